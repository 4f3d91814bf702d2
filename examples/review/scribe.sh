# An agent of a few lines: it reads its task, and does what it always does.
read -r task
case $task in
*reviewed*) sed -i 's/a hand/both hands/' CONTRIBUTING.md ;;
*conflict*) printf '# Contributing, by hand and by machine\n' >head && sed '1,/^>>>>>>>/d' CONTRIBUTING.md >>head && mv head CONTRIBUTING.md ;;
*) sed -i '1s/.*/# Contributing by hand/' CONTRIBUTING.md ;;
esac
