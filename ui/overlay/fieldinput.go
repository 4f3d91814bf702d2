package overlay

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// key types, moves and chooses within the field.
func (e *entry) key(k tea.KeyPressMsg) {
	switch name := k.String(); {
	case e.chooses():
		e.choose(k)
	case name == "right" && e.suggest():
	case e.Type != JSONField:
		e.in.Update(k)
	case name == "alt+enter" || name == "ctrl+j":
		e.area.key(tea.KeyPressMsg{Code: tea.KeyEnter})
	default:
		e.area.key(k)
	}
}

// suggest completes what was typed to the next value that is likely, when the
// cursor is at its end; it tells whether there was one.
func (e *entry) suggest() bool {
	typed := e.in.Value()
	if len(e.Suggest) == 0 || e.in.BeforeCursor() != typed {
		return false
	}
	at := slices.Index(e.Suggest, typed)
	if at < 0 {
		at = slices.IndexFunc(e.Suggest, func(s string) bool { return strings.HasPrefix(strings.ToLower(s), strings.ToLower(typed)) })
		if at < 0 {
			return false
		}
		at--
	}
	e.in.SetValue(e.Suggest[(at+1)%len(e.Suggest)])
	return true
}

// within moves between the lines of a field that has several.
func (e *entry) within(by int, k tea.KeyPressMsg) bool {
	row := e.area.row + by
	if e.Type != JSONField || row < 0 || row >= len(e.area.lines) {
		return false
	}
	e.area.key(k)
	return true
}

// choose goes to another choice: left, right, space, a letter it begins with;
// backspace chooses none of an optional field.
func (e *entry) choose(k tea.KeyPressMsg) {
	n := len(e.choices)
	switch name := k.String(); {
	case n == 0:
	case name == "right" || name == "space":
		e.at = (e.at + 1) % n
	case name == "left":
		e.at = (max(e.at, 0) - 1 + n) % n
	case name == "home":
		e.at = 0
	case name == "end":
		e.at = n - 1
	case name == "backspace" || name == "delete":
		if !e.Required {
			e.at = -1
		}
	case k.Text != "":
		letter := strings.ToLower(k.Text)
		for i := 1; i <= n; i++ {
			next := (e.at + i + n) % n
			if strings.HasPrefix(strings.ToLower(e.choices[next]), letter) {
				e.at = next
				return
			}
		}
	}
}

// paste puts text in at the cursor. Text that one line can't show is kept
// exactly, as a JSON string, where the field is empty. A choice is never
// pasted.
func (e *entry) paste(text string) {
	switch {
	case e.chooses():
		return
	case e.Type == JSONField:
		e.area.insert(text)
		return
	}
	text = strings.TrimRight(text, "\r\n")
	if e.Type == StringField && e.in.Value() == "" && term.Clean(text) != text && len(text) < maxInput/6 {
		if v, err := core.Encode(text); err == nil && e.preset(v) {
			return
		}
	}
	e.in.Insert(text)
}
