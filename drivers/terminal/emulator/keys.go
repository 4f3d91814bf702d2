package emulator

import (
	"cmp"
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
	base, mods := name, 0 // as in the codes
	for {
		mod, rest, is := strings.Cut(base, "+")
		bit := map[string]int{"shift": 1, "alt": 2, "ctrl": 4}[mod]
		if !is || bit == 0 || rest == "" {
			break
		}
		base, mods = rest, mods|bit
	}
	if code, is := keyCodes[base]; is {
		number, final := code[:len(code)-1], code[len(code)-1:]
		switch {
		case mods > 0:
			return "\x1b[" + cmp.Or(number, "1") + ";" + strconv.Itoa(1+mods) + final
		case number == "" && (app || base[0] == 'f'): // the first function keys
			return "\x1bO" + final
		}
		return "\x1b[" + code
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
	case r >= 'a' && r <= 'z', r >= '@' && r <= '_', r == ' ':
		return string(r & 0x1f)
	case r == '?':
		return "\x7f"
	case r == '/':
		return "\x1f"
	}
	return ""
}

// keyCodes are the longer codes of keys, behind their begin.
var keyCodes = map[string]string{
	"up": "A", "down": "B", "right": "C", "left": "D", "end": "F", "home": "H", "f1": "P", "f2": "Q", "f3": "R", "f4": "S",
	"insert": "2~", "delete": "3~", "pgup": "5~", "pgdown": "6~",
	"f5": "15~", "f6": "17~", "f7": "18~", "f8": "19~", "f9": "20~", "f10": "21~", "f11": "23~", "f12": "24~",
}
