package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Input is what somebody types: text as it is, a key by its name, text that is
// pasted, or what they do with the mouse. One of them is given.
type Input struct {
	Text  string
	Key   string // "enter", "ctrl+c", "shift+tab", "f5"
	Paste string
	Mouse *Mouse
}

// Mouse is what somebody does with the mouse at a place of the screen, from 0. A
// program has it that asks for it.
type Mouse struct {
	Button           MouseButton `allow:"left, middle, right, wheel up, wheel down"`
	Act              MouseAct    `allow:"press, release, drag"`
	X, Y             int
	Shift, Alt, Ctrl bool
}

// MouseButton is a button, or the wheel.
type MouseButton string

// The buttons.
const (
	MouseLeft   MouseButton = "left"
	MouseMiddle MouseButton = "middle"
	MouseRight  MouseButton = "right"
	WheelUp     MouseButton = "wheel up"
	WheelDown   MouseButton = "wheel down"
)

// MouseAct is what is done with a button; the wheel is only pressed.
type MouseAct string

// The acts.
const (
	MousePress   MouseAct = "press"
	MouseRelease MouseAct = "release"
	MouseDrag    MouseAct = "drag" // moved with the button pressed
)

// named is what of an input stands in angle brackets, "" for text.
func (i Input) named() string {
	if m := i.Mouse; m != nil {
		return "mouse " + string(m.Act) + " " + string(m.Button)
	}
	return i.Key
}

func (m *Mouse) check() error {
	if err := bound.CheckIn("mouse.", m); err != nil {
		return err
	}
	if m.X < 0 || m.X >= MaxCols || m.Y < 0 || m.Y >= MaxRows {
		return core.Invalid("mouse", fmt.Sprintf("%d,%d", m.X, m.Y), fmt.Sprintf("a place from 0,0 to %d,%d", MaxCols-1, MaxRows-1))
	}
	return nil
}

// Bounds of what is typed at once.
const (
	MaxInputs = 1024
	MaxTyped  = 64 << 10 // bytes
)

// Check refuses what is no input.
func Check(in []Input) error {
	n := 0
	for _, i := range in {
		n += len(i.Text) + len(i.Key) + len(i.Paste)
		if i.Mouse != nil {
			if err := i.Mouse.check(); err != nil {
				return err
			}
		}
		if len(i.Key) > 32 || !utf8.ValidString(i.Text+i.Key+i.Paste) {
			return core.Invalid("input", core.Clip(i.Key), "text in UTF-8, or the name of a key")
		}
	}
	if len(in) == 0 || len(in) > MaxInputs || n > MaxTyped {
		return core.Invalid("input", fmt.Sprintf("%d of %d bytes", len(in), n), fmt.Sprintf("1-%d of together at most %d bytes", MaxInputs, MaxTyped))
	}
	return nil
}

// Said is what was typed, for people to read: keys and the mouse stand in angle brackets.
func Said(in []Input) string {
	var b strings.Builder
	for _, i := range in {
		switch {
		case i.named() != "":
			b.WriteString("<" + i.named() + ">")
		case i.Paste != "":
			b.WriteString(i.Paste)
		default:
			b.WriteString(i.Text)
		}
	}
	return b.String()
}

// Shown is what of a typed text may be read later: of one that its terminal does
// not show only the keys and how many characters there were.
func Shown(in []Input, unseen bool) string {
	if !unseen {
		return Said(in)
	}
	var keys strings.Builder
	n := 0
	for _, i := range in {
		n += utf8.RuneCountInString(i.Text + i.Paste)
		if name := i.named(); name != "" {
			keys.WriteString("<" + name + ">")
		}
	}
	if n > 0 {
		return fmt.Sprintf("(%d characters that the terminal does not show)", n) + keys.String()
	}
	return keys.String()
}
