package secret

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON masks a line that may be JSON, where a value can be spelled with
// escapes that nobody needs. A line without a value is returned as it is.
func (m *Mask) JSON(line []byte) []byte {
	if m == nil {
		return line
	}
	plain := line
	if start := bytes.TrimLeft(line, " \t"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		plain = unescaped(line)
	}
	if masked := m.Bytes(plain); !bytes.Equal(masked, plain) {
		return masked
	}
	return line
}

// unescaped spells JSON without the escapes of characters that need none.
func unescaped(line []byte) []byte {
	if !bytes.Contains(line, []byte(`\u`)) && !bytes.Contains(line, []byte(`\/`)) {
		return line
	}
	out := make([]byte, 0, len(line))
	for len(line) > 0 {
		i := bytes.IndexByte(line, '\\')
		if i < 0 || i+1 == len(line) {
			break
		}
		out, line = append(out, line[:i]...), line[i:]
		n := 2
		switch r, size := escaped(line); {
		case line[1] == '/':
			out = append(out, '/')
		case size > 0 && r >= 0x20 && r != '"' && r != '\\':
			out, n = utf8.AppendRune(out, r), size
		default:
			out = append(out, line[:2]...)
		}
		line = line[n:]
	}
	return append(out, line...)
}

// escaped reads \uXXXX or two of them that are one character, and how many
// bytes that takes; 0 for anything else.
func escaped(text []byte) (r rune, size int) {
	r, ok := unit(text)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, ok := unit(text[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 12
}

func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
