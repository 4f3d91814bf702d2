#!/bin/sh
# Counts the notes that say what is left to do, and logs where the first ones
# stand. Reads only.
here=$(dirname "$0")
. "$here/lib.sh"

notes() {
	marks='(TODO|FIXME|XXX)([^A-Za-z]|$)'
	if in_git; then
		git grep -nIE -e "$marks" -- . 2>/dev/null
	else
		find . -maxdepth 4 -type f -size -200k ! -path '*/.*' 2>/dev/null | head -n 2000 |
			while IFS= read -r file; do grep -nE -e "$marks" "$file" /dev/null 2>/dev/null | grep -v '^Binary file'; done
	fi | head -n 500
}

work() {
	say "Looking for TODO, FIXME and XXX in $(pwd)"
	all=$(notes | cut -c 1-160)
	n=$(lines_of "$all")
	files=$(printf '%s\n' "$all" | sed '/^$/d; s/:.*//' | sort -u | wc -l | tr -d ' ')
	[ -n "$all" ] && printf '%s\n' "$all" | head -n 12 | log_lines
	say "$n notes in $files files."
	done_with "{\"notes\":$n,\"files\":$files}"
}

each_task
