#!/bin/sh
# Wants to write a note into the current directory. It asks first, and writes
# exactly what was approved, to exactly the approved path: an operator may
# have changed both.
here=$(dirname "$0")
. "$here/lib.sh"

draft() {
	echo "Notes on $(basename "$(pwd)")"
	echo
	echo "Written $(date -u '+%Y-%m-%d %H:%M UTC') after an operator's approval."
	echo "Entries here: $(ls | wc -l | tr -d ' ')."
	if in_git; then
		echo "Branch: $(git rev-parse --abbrev-ref HEAD 2>/dev/null)."
		echo "Last commit: $(git log --no-color -n 1 --format='%h %s' 2>/dev/null)"
	fi
}

ask() {
	path=swarmdeck-notes.txt
	verb=write
	[ -e "$path" ] && verb=replace
	asked=$((asked + 1)) call=write-$$-$asked
	say "I have a note ready and would like to $verb $path."
	printf '{"type":"tool_request","call_id":"%s","tool":"fs.write","args":{"path":%s,"content":%s},"intent":%s,"risk":"medium"}\n' \
		"$call" "$(printf '%s' "$path" | quote)" "$(draft | quote '\\n')" "$(printf '%s' "$verb $path in $(pwd)" | quote)"
}

# answer does what the decision says.
answer() {
	case $(member "$1" decision) in
	approve) write "$1" ;;
	deny)
		say "The write was denied: $(member "$1" reason). I leave everything as it is."
		done_with '{"written":false,"why":"denied"}'
		;;
	*) failed "told to stop" ;;
	esac
}

write() {
	path=$(member "$1" args.path) && [ -n "$path" ] || { failed "the approved arguments name no path"; return; }
	new=$path.new.$$
	# Into a file beside it and renamed: the file is there wholly or not at all.
	if member "$1" args.content >"$new" && mv -f -- "$new" "$path"; then
		bytes=$(wc -c <"$path" | tr -d ' ')
		printf '{"type":"tool_result","call_id":"%s","status":"ok","result":{"bytes":%s}}\n' "$call" "$bytes"
		say "Wrote $bytes bytes to $path."
		done_with "{\"written\":true,\"path\":$(printf '%s' "$path" | quote),\"bytes\":$bytes}"
	else
		rm -f -- "$new"
		printf '{"type":"tool_result","call_id":"%s","status":"error","result":{}}\n' "$call"
		failed "can't write $path"
	fi
}

asked=0
while IFS= read -r line; do
	case $(member "$line" type) in
	task) ask ;;
	decision) answer "$line" ;;
	cancel) failed "cancelled" ;;
	esac
done
