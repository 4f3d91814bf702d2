package overlay

import (
	"unicode"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// maxInput bounds one line of input, in characters.
const maxInput = 16 << 10

// Input edits one line of printable text. The zero value is empty.
type Input struct {
	text []rune
	at   int // the cursor, 0..len(text)
}

// Value is the text.
func (in *Input) Value() string { return string(in.text) }

// BeforeCursor is the text left of the cursor.
func (in *Input) BeforeCursor() string { return string(in.text[:in.at]) }

// SetValue replaces the text and puts the cursor at its end.
func (in *Input) SetValue(s string) {
	in.text, in.at = nil, 0
	in.Insert(s)
}

// Insert types s at the cursor, made printable; what exceeds the bound of
// 16384 characters is left out.
func (in *Input) Insert(s string) {
	add := []rune(term.Clean(clip(s, 4*maxInput)))
	if room := maxInput - len(in.text); len(add) > room {
		add = add[:max(room, 0)]
	}
	text := make([]rune, 0, len(in.text)+len(add))
	text = append(append(append(text, in.text[:in.at]...), add...), in.text[in.at:]...)
	// Pieces that are clean alone need not be so together: a mark may follow
	// more of its kind. What is shown is what is kept.
	before := len([]rune(term.Clean(string(text[:in.at+len(add)]))))
	in.text = []rune(term.Clean(string(text)))
	in.at = min(before, len(in.text))
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// Update edits the text: letters, left, right, home, end, backspace, delete,
// and the usual ctrl+a, e, w, u, k. It tells whether the key was for it.
func (in *Input) Update(msg tea.Msg) bool {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		in.Insert(msg.Content)
		return true
	case tea.KeyPressMsg:
		return in.key(msg)
	}
	return false
}

func (in *Input) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "left":
		in.at = max(in.at-1, 0)
	case "right":
		in.at = min(in.at+1, len(in.text))
	case "home", "ctrl+a":
		in.at = 0
	case "end", "ctrl+e":
		in.at = len(in.text)
	case "alt+left", "ctrl+left", "alt+b":
		in.at = in.wordLeft()
	case "alt+right", "ctrl+right", "alt+f":
		in.at = in.wordRight()
	case "backspace", "ctrl+h":
		in.cut(max(in.at-1, 0), in.at)
	case "delete":
		in.cut(in.at, min(in.at+1, len(in.text)))
	case "ctrl+w", "alt+backspace":
		in.cut(in.wordLeft(), in.at)
	case "ctrl+u":
		in.cut(0, in.at)
	case "ctrl+k":
		in.cut(in.at, len(in.text))
	default:
		if k.Text == "" {
			return false
		}
		in.Insert(k.Text)
	}
	return true
}

// cut takes away text[from:to].
func (in *Input) cut(from, to int) {
	in.text = append(in.text[:from:from], in.text[to:]...)
	in.at = from
}

func (in *Input) wordLeft() int {
	i := in.at
	for i > 0 && unicode.IsSpace(in.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(in.text[i-1]) {
		i--
	}
	return i
}

func (in *Input) wordRight() int {
	i := in.at
	for i < len(in.text) && unicode.IsSpace(in.text[i]) {
		i++
	}
	for i < len(in.text) && !unicode.IsSpace(in.text[i]) {
		i++
	}
	return i
}

// Draw draws the text in w cells, moved so that the cursor is in sight, and
// shows the cursor there.
func (in *Input) Draw(c *screen.Canvas, x, y, w int, role screen.Role) {
	if w <= 0 {
		return
	}
	from, width := in.at, 0
	for from > 0 {
		n := term.Width(string(in.text[from-1]))
		if width+n > w-1 {
			break
		}
		width += n
		from--
	}
	c.Fill(screen.Rect{X: x, Y: y, W: w, H: 1}, role, ' ')
	end := min(len(in.text), from+2*w+8)
	sub := c.Sub(screen.Rect{X: x, Y: y, W: w, H: 1})
	sub.Text(0, 0, role, string(in.text[from:end]))
	c.SetCursor(x+min(term.Width(string(in.text[from:in.at])), w-1), y)
}
