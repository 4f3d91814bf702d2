package core

import "bytes"

// isCanonical reports JSON that stands in RFC 8785 form already, as most of
// what programs write does: no space, members in order, and nothing that could
// be written in another way. It says no where it would have to look closer: at
// escapes, at characters beyond ASCII, at numbers other than short integers.
func isCanonical(data []byte) bool {
	rest, ok := plainValue(data, 0)
	return ok && len(rest) == 0
}

// plainValue reads one value and returns what follows it.
func plainValue(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 || depth > MaxDepth {
		return nil, false
	}
	switch b[0] {
	case '{':
		return plainMembers(b[1:], depth+1)
	case '[':
		return plainElements(b[1:], depth+1)
	case '"':
		_, rest, ok = plainString(b)
		return rest, ok
	case 't':
		return bytes.CutPrefix(b, []byte("true"))
	case 'f':
		return bytes.CutPrefix(b, []byte("false"))
	case 'n':
		return bytes.CutPrefix(b, []byte("null"))
	}
	return plainInteger(b)
}

func plainMembers(b []byte, depth int) (rest []byte, ok bool) {
	if rest, ok = bytes.CutPrefix(b, []byte("}")); ok {
		return rest, true
	}
	var last []byte
	for first := true; ; first = false {
		name, rest, ok := plainString(b)
		if !ok || !first && bytes.Compare(last, name) >= 0 {
			return nil, false
		}
		last = name
		if rest, ok = bytes.CutPrefix(rest, []byte(":")); !ok {
			return nil, false
		}
		if rest, ok = plainValue(rest, depth); !ok || len(rest) == 0 {
			return nil, false
		}
		if rest[0] != ',' {
			return bytes.CutPrefix(rest, []byte("}"))
		}
		b = rest[1:]
	}
}

func plainElements(b []byte, depth int) (rest []byte, ok bool) {
	if rest, ok = bytes.CutPrefix(b, []byte("]")); ok {
		return rest, true
	}
	for {
		rest, ok := plainValue(b, depth)
		if !ok || len(rest) == 0 {
			return nil, false
		}
		if rest[0] != ',' {
			return bytes.CutPrefix(rest, []byte("]"))
		}
		b = rest[1:]
	}
}

// plainString reads a string of ASCII without escapes.
func plainString(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return nil, nil, false
	}
	text = b[1 : 1+end]
	for _, c := range text {
		if c < ' ' || c == '\\' || c >= 0x80 {
			return nil, nil, false
		}
	}
	return text, b[end+2:], true
}

// plainInteger reads an integer of at most 15 digits.
func plainInteger(b []byte) (rest []byte, ok bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	if n == 0 || n > 15 || digits[0] == '0' && (n > 1 || b[0] == '-') {
		return nil, false
	}
	rest = digits[n:]
	return rest, len(rest) == 0 || rest[0] == ',' || rest[0] == '}' || rest[0] == ']'
}
