package term

// escape returns the length of the escape sequence at the start of s, which
// begins with ESC or with a C1 control in UTF-8. A sequence that is not
// finished loses only its introducer: what follows stays visible, so nobody
// can hide text behind a string that never ends.
func escape(s string) int {
	intro, kind := 1, byte(0)
	if s[0] == 0x1b {
		if len(s) < 2 {
			return 1
		}
		intro, kind = 2, s[1]
	} else { // U+0080..U+009F is C2 80..C2 9F and stands for ESC 0x40..0x5F
		intro, kind = 2, s[1]-0x40
	}
	switch kind {
	case '[':
		return control7(s, intro)
	case ']', 'P', 'X', '^', '_':
		return stringEnd(s, intro)
	}
	if s[0] != 0x1b {
		return intro // a C1 control without arguments
	}
	// ESC, intermediates, one final byte.
	i := 1
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return 1
}

// control7 is the end of a CSI sequence whose parameters start at i.
func control7(s string, i int) int {
	start := i
	for i < len(s) && s[i] >= 0x30 && s[i] <= 0x3f {
		i++
	}
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f {
		i++
	}
	if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
		return i + 1
	}
	return start
}

// stringEnd is the end of an OSC, DCS, SOS, PM or APC string: after BEL, ESC
// backslash or U+009C. Any other control breaks the string off, as terminals
// do, so that looking for ends stays linear in the length of s.
func stringEnd(s string, start int) int {
	const maxString = 64 << 10
	for i := start; i < len(s) && i < start+maxString; i++ {
		switch b := s[i]; {
		case b == '\a':
			return i + 1
		case b == 0x1b && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case b == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c:
			return i + 2
		case b < 0x20, b == 0xc2 && i+1 < len(s) && s[i+1] >= 0x80 && s[i+1] < 0xa0:
			return start
		}
	}
	return start
}
