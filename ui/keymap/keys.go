package keymap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/ui/term"
)

const maxKeys = 4 // in one sequence

// named are the keys that have a name.
var named = []string{
	"enter", "esc", "tab", "space", "backspace", "delete", "insert", "up", "down", "left", "right", "home", "end", "pgup", "pgdown",
	"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
}

// spellings are other names of them.
var spellings = map[string]string{"escape": "esc", "return": "enter", "pageup": "pgup", "pagedown": "pgdown", "del": "delete", "ins": "insert"}

// modifiers in the order the toolkit writes them.
var modifiers = []string{"ctrl", "alt", "shift"}

// ParseSequence reads keys with spaces between them. Other common spellings
// are accepted: escape, return, pageup, pagedown, del, ins.
func ParseSequence(text string) (Sequence, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, fmt.Errorf("key is empty; write the space bar as \"space\"")
	}
	if len(fields) > maxKeys {
		return nil, fmt.Errorf("key %q: at most %d keys in a sequence", term.Cut(text, 60), maxKeys)
	}
	seq := make(Sequence, len(fields))
	for i, f := range fields {
		key, err := parseKey(f)
		if err != nil {
			return nil, err
		}
		seq[i] = key
	}
	return seq, nil
}

// parseKey brings one key into the toolkit's spelling.
func parseKey(text string) (string, error) {
	rest := text
	var mods []string
	for {
		mod, after, ok := strings.Cut(rest, "+")
		mod = strings.ToLower(mod)
		if !ok || after == "" || !slices.Contains(modifiers, mod) {
			break
		}
		if slices.Contains(mods, mod) {
			return "", fmt.Errorf("key %q: %s twice", term.Cut(text, 60), mod)
		}
		mods, rest = append(mods, mod), after
	}
	base, err := baseKey(rest)
	if err != nil {
		return "", fmt.Errorf("key %q: %w", term.Cut(text, 60), err)
	}
	if len(mods) == 0 {
		return base, nil
	}
	if utf8.RuneCountInString(base) == 1 {
		if slices.Equal(mods, []string{"shift"}) { // shift+g arrives as G
			return strings.ToUpper(base), nil
		}
		base = strings.ToLower(base)
	}
	var b strings.Builder
	for _, m := range modifiers {
		if slices.Contains(mods, m) {
			b.WriteString(m + "+")
		}
	}
	return b.String() + base, nil
}

func baseKey(text string) (string, error) {
	if utf8.RuneCountInString(text) == 1 && text == term.Clean(text) && text != string(term.Replacement) {
		return text, nil
	}
	name := strings.ToLower(text)
	if name = cmp.Or(spellings[name], name); slices.Contains(named, name) {
		return name, nil
	}
	return "", fmt.Errorf("no such key; one character, or one of %s, with ctrl+, alt+ or shift+ before it", strings.Join(named[:15], " "))
}

// Presser collects keys until they mean something. It belongs to one
// goroutine.
type Presser struct {
	Map     *Keymap
	pending Sequence
}

// Press adds a key. The match says what the keys so far mean; when they mean
// nothing, they are forgotten, and the last of them is forgotten with them: a
// mistaken sequence does nothing at all.
func (p *Presser) Press(scopes []string, key string) Match {
	if key == "esc" && len(p.pending) > 0 {
		p.Reset()
		return Match{}
	}
	p.pending = append(p.pending, key)
	m := p.Map.Lookup(scopes, p.pending)
	if len(m.More) == 0 {
		p.Reset()
	}
	return m
}

// Pending are the keys pressed so far of an unfinished sequence.
func (p *Presser) Pending() Sequence { return p.pending }

// Reset forgets them: when focus moves or an overlay opens.
func (p *Presser) Reset() { p.pending = nil }
