# What the agents share: JSON lines in and out, with sh and awk only.
# An agent sets $here to its own directory before it sources this.
LC_ALL=C
export LC_ALL

# quote prints its stdin as one JSON string. Bytes that are not ASCII text are
# left out, so that any output makes a valid line. $1 is put at the end.
quote() {
	tr -d '\000-\010\013-\037\177-\377' | awk '
		{ gsub(/[\\"]/, "\\\\&"); gsub(/\t/, "\\t"); out = out (NR > 1 ? "\\n" : "") $0 }
		END { printf "\"%s%s\"", out, end }' end="$1"
}

# member prints the value at a path of the JSON document in $1.
member() { printf '%s\n' "$1" | awk -v path="$2" -f "$here/json.awk"; }

say() { printf '{"type":"message","text":%s}\n' "$(printf '%s' "$1" | quote)"; }
log() { printf '{"type":"log","level":"INFO","message":%s}\n' "$(printf '%s' "$1" | quote)"; }

# log_lines logs each line of its stdin, slowly enough to be read as it comes.
log_lines() { while IFS= read -r text; do log "$text"; sleep 0.1 2>/dev/null || :; done; }

# done_with ends the task: a JSON object as output, and how sure we are.
done_with() { printf '{"type":"result","status":"succeeded","output":%s,"confidence":%s}\n' "$1" "${2:-0.97}"; }
failed() { printf '{"type":"result","status":"failed","output":{},"error":%s}\n' "$(printf '%s' "$1" | quote)"; }

# lines_of counts the lines of $1; nothing is none.
lines_of() { if [ -z "$1" ]; then echo 0; else printf '%s\n' "$1" | wc -l | tr -d ' '; fi; }

# in_git tells whether this directory is kept in git.
in_git() { command -v git >/dev/null 2>&1 && git rev-parse --is-inside-work-tree >/dev/null 2>&1; }

# each_task calls work for every task that comes in, until stdin ends.
each_task() {
	while IFS= read -r line; do
		case $(member "$line" type) in
		task) work "$line" ;;
		esac
	done
}
