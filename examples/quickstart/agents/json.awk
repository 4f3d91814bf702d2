# Reads one JSON document and prints the value at a path of member names
# (-v path=args.content): text unquoted, everything else as it stands.
# Exit code 1: no such member. 2: not JSON. Works on bytes: run with LC_ALL=C.

{ doc = doc (NR > 1 ? "\n" : "") $0 }

END {
	at = 1; end = length(doc); found = 0; wanted = path; bad = 0
	value("", 0)
	blanks()
	if (bad || at <= end) exit 2
	exit !found
}

function blanks() { while (at <= end && index(" \t\r\n", substr(doc, at, 1))) at++ }

# value skips one value; at the wanted path it prints it.
function value(here, depth,    ch, start, mine, text) {
	blanks()
	if (bad || depth > 64) { bad = 1; return }
	start = at; ch = substr(doc, at, 1); mine = (here == wanted && !found)
	if (ch == "\"") {
		text = string()
		if (mine && !bad) { found = 1; printf "%s", text }
		return
	}
	if (ch == "{") object(here, depth)
	else if (ch == "[") list(here, depth)
	else {
		while (at <= end && index("+-.0123456789abcdefghijklmnopqrstuvwxyzE", substr(doc, at, 1))) at++
		if (at == start) bad = 1
	}
	if (mine && !bad) { found = 1; printf "%s", substr(doc, start, at - start) }
}

function object(here, depth,    ch, name) {
	at++; blanks()
	if (substr(doc, at, 1) == "}") { at++; return }
	while (!bad) {
		blanks()
		if (substr(doc, at, 1) != "\"") { bad = 1; return }
		name = string(); blanks()
		if (substr(doc, at, 1) != ":") { bad = 1; return }
		at++
		value(here == "" ? name : here "." name, depth + 1); blanks()
		ch = substr(doc, at, 1); at++
		if (ch == "}") return
		if (ch != ",") bad = 1
	}
}

function list(here, depth,    ch, i) {
	at++; blanks()
	if (substr(doc, at, 1) == "]") { at++; return }
	for (i = 0; !bad; i++) {
		value(here "[" i "]", depth + 1); blanks()
		ch = substr(doc, at, 1); at++
		if (ch == "]") return
		if (ch != ",") bad = 1
	}
}

# string reads a quoted string and undoes its escapes.
function string(    out, ch, run, code, low) {
	at++
	while (at <= end) {
		run = match(substr(doc, at, 4096), /["\\]/)
		if (!run) { out = out substr(doc, at, 4096); at += 4096; continue }
		out = out substr(doc, at, run - 1); at += run - 1
		ch = substr(doc, at, 1); at++
		if (ch == "\"") return out
		ch = substr(doc, at, 1); at++
		if (ch == "n") out = out "\n"
		else if (ch == "t") out = out "\t"
		else if (ch == "r") out = out "\r"
		else if (ch == "b") out = out "\b"
		else if (ch == "f") out = out "\f"
		else if (ch == "u") {
			code = hex(substr(doc, at, 4)); at += 4
			if (code >= 55296 && code < 56320 && substr(doc, at, 2) == "\\u") {
				low = hex(substr(doc, at + 2, 4)); at += 6
				code = 65536 + (code - 55296) * 1024 + low - 56320
			}
			out = out utf8(code)
		}
		else out = out ch
	}
	bad = 1
	return out
}

function hex(s,    i, n) {
	n = 0
	for (i = 1; i <= 4; i++) n = n * 16 + index("0123456789abcdef", tolower(substr(s, i, 1))) - 1
	return n
}

function utf8(c) {
	if (c < 128) return sprintf("%c", c)
	if (c < 2048) return sprintf("%c%c", 192 + int(c / 64), 128 + c % 64)
	if (c < 65536) return sprintf("%c%c%c", 224 + int(c / 4096), 128 + int(c / 64) % 64, 128 + c % 64)
	return sprintf("%c%c%c%c", 240 + int(c / 262144), 128 + int(c / 4096) % 64, 128 + int(c / 64) % 64, 128 + c % 64)
}
