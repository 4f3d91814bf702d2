#!/bin/sh
# Says what changed in the current directory: git's log and status, or the
# files of the last day where there is no git. Reads only.
here=$(dirname "$0")
. "$here/lib.sh"

work() {
	if in_git; then
		commits=$(git log --no-color --format='%h %cr: %s' -n 8 -- . 2>/dev/null)
		pending=$(git --no-optional-locks status --short . 2>/dev/null | head -n 50)
		say "Looking at git in $(pwd)"
		[ -n "$commits" ] && printf '%s\n' "$commits" | log_lines
		[ -n "$pending" ] && printf '%s\n' "$pending" | head -n 12 | log_lines
		n=$(lines_of "$commits") m=$(lines_of "$pending")
		say "$m paths with changes not committed; the last $n commits are in the log."
		done_with "{\"commits_shown\":$n,\"paths_not_committed\":$m}"
	else
		recent=$(find . -maxdepth 3 -type f -mtime -1 ! -path '*/.*' 2>/dev/null | head -n 100)
		say "No git in $(pwd); looking at files of the last day"
		[ -n "$recent" ] && printf '%s\n' "$recent" | head -n 12 | log_lines
		n=$(lines_of "$recent")
		say "$n files changed within a day."
		done_with "{\"files_changed_within_a_day\":$n}"
	fi
}

each_task
