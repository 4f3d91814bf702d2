package emulator

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

// Keys are the bytes that a terminal sends for what is typed.
func (e *Emulator) Keys(in []terminal.Input) ([]byte, error) {
	e.mu.Lock()
	modes := e.modes
	e.mu.Unlock()
	var out []byte
	for _, i := range in {
		switch {
		case i.Mouse != nil:
			out = append(out, modes.pointed(i.Mouse)...)
		case i.Key != "":
			code := key(i.Key, modes.appKeys)
			if code == "" {
				return nil, core.Invalid("key", i.Key, "a key that a terminal has a code for")
			}
			out = append(out, code...)
		case i.Paste != "":
			out = append(out, Pasted(i.Paste, modes.pasting)...)
		default:
			out = append(out, i.Text...)
		}
	}
	return out, nil
}

// Pastes reports whether the program is told of a paste as one.
func (e *Emulator) Pastes() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pasting
}

// Pasted is a text as a terminal pastes it: line breaks are those of the enter
// key, and of other controls only tabs are left, so that a text can't end the
// paste or press a key.
func Pasted(text string, bracketed bool) string {
	text = strings.NewReplacer("\r\n", "\r", "\n", "\r").Replace(text)
	text = strings.Map(func(r rune) rune {
		if r != '\r' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) {
			return -1
		}
		return r
	}, text)
	if bracketed {
		return "\x1b[200~" + text + "\x1b[201~"
	}
	return text
}

// key is the code of a key by its name: "ctrl+c", "alt+enter", "shift+up". It is
// "" for one that has none.
func key(name string, app bool) string {
	mods := 0 // shift 1, alt 2, ctrl 4: as in the codes
	base := name
	for {
		rest, cutShift := strings.CutPrefix(base, "shift+")
		if cutShift && rest != "" {
			base, mods = rest, mods|1
			continue
		}
		if rest, is := strings.CutPrefix(base, "alt+"); is && rest != "" {
			base, mods = rest, mods|2
			continue
		}
		if rest, is := strings.CutPrefix(base, "ctrl+"); is && rest != "" {
			base, mods = rest, mods|4
			continue
		}
		break
	}
	if final, is := cursorKeys[base]; is {
		switch {
		case mods > 0:
			return "\x1b[1;" + strconv.Itoa(1+mods) + final
		case app || base[0] == 'f': // the first function keys
			return "\x1bO" + final
		}
		return "\x1b[" + final
	}
	if n, is := numberedKeys[base]; is {
		if mods > 0 {
			return "\x1b[" + n + ";" + strconv.Itoa(1+mods) + "~"
		}
		return "\x1b[" + n + "~"
	}
	code := simple(base, mods)
	if code != "" && mods&2 != 0 {
		return "\x1b" + code
	}
	return code
}

// simple is the code of a key that has one of its own, without alt.
func simple(base string, mods int) string {
	switch base {
	case "enter":
		return "\r"
	case "tab":
		if mods&1 != 0 {
			return "\x1b[Z"
		}
		return "\t"
	case "esc":
		return "\x1b"
	case "backspace":
		if mods&4 != 0 {
			return "\b"
		}
		return "\x7f"
	case "space":
		base = " "
	}
	r, size := utf8.DecodeRuneInString(base)
	if size != len(base) || r == utf8.RuneError || r < 0x20 || r == 0x7f {
		return ""
	}
	if mods&4 == 0 {
		return base
	}
	switch {
	case r >= 'a' && r <= 'z', r >= '@' && r <= '_':
		return string(r & 0x1f)
	case r == ' ':
		return "\x00"
	case r == '?':
		return "\x7f"
	case r == '/':
		return "\x1f"
	}
	return ""
}

// The keys with longer codes, by their names.
var (
	cursorKeys = map[string]string{
		"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H", "f1": "P", "f2": "Q", "f3": "R", "f4": "S",
	}
	numberedKeys = map[string]string{
		"insert": "2", "delete": "3", "pgup": "5", "pgdown": "6", "f5": "15", "f6": "17", "f7": "18", "f8": "19", "f9": "20", "f10": "21", "f11": "23", "f12": "24",
	}
)
