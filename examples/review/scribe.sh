# An agent of two lines: it reads its task, and does what it always does.
read -r task
sed -i '1s/.*/# Contributing by hand/' CONTRIBUTING.md
