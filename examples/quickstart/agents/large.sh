#!/bin/sh
# Lists the largest files at hand. Reads only.
here=$(dirname "$0")
. "$here/lib.sh"

work() {
	say "Measuring files in $(pwd)"
	all=$(find . -maxdepth 5 -type f ! -path './.git/*' -exec du -k {} + 2>/dev/null | sort -rn | head -n 5000)
	n=$(lines_of "$all")
	total=$(printf '%s\n' "$all" | awk '{ sum += $1 } END { print sum + 0 }')
	[ -n "$all" ] && printf '%s\n' "$all" | head -n 12 | awk '{ size = $1; sub(/^[0-9]+[ \t]+/, ""); printf "%7d KiB  %s\n", size, $0 }' | log_lines
	say "$n files, $total KiB together; the largest are in the log."
	done_with "{\"files\":$n,\"kib\":$total}"
}

each_task
