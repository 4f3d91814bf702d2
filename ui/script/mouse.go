package script

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/term"
)

// click presses the left button of the mouse, or with right that one, on a cell or on the
// first that a pattern finds.
func (r *run) click(ts teller, args []string) {
	button := tea.MouseLeft
	if len(args) > 1 && args[0] == "right" {
		button, args = tea.MouseRight, args[1:]
	}
	x, y := r.spot(ts, "click", args)
	s := r.live(ts)
	s.press(tea.MouseClickMsg{X: x, Y: y, Button: button})
	s.press(tea.MouseReleaseMsg{X: x, Y: y, Button: button})
}

// drag moves it from one cell to another, pressed.
func (r *run) drag(ts teller, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: drag ROW,COL ROW,COL")
	}
	x, y := r.spot(ts, "drag", args[:1])
	toX, toY := r.spot(ts, "drag", args[1:])
	s := r.live(ts)
	s.press(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	s.press(tea.MouseMotionMsg{X: toX, Y: toY, Button: tea.MouseLeft})
	s.press(tea.MouseReleaseMsg{X: toX, Y: toY, Button: tea.MouseLeft})
}

// wheel turns its wheel by a step.
func (r *run) wheel(ts teller, args []string) {
	if len(args) < 2 || args[0] != "up" && args[0] != "down" {
		ts.Fatalf("usage: wheel up|down ROW,COL or /regular expression/")
	}
	x, y := r.spot(ts, "wheel", args[1:])
	button := map[string]tea.MouseButton{"up": tea.MouseWheelUp, "down": tea.MouseWheelDown}[args[0]]
	r.live(ts).press(tea.MouseWheelMsg{X: x, Y: y, Button: button})
}

// spot is a cell, counted from 0: ROW,COL counts from 1.
func (r *run) spot(ts teller, what string, args []string) (x, y int) {
	if len(args) == 1 {
		if y, x, ok := rowCol(args[0]); ok {
			return x - 1, y - 1
		}
	}
	re := pattern(ts, what, args)
	for y, row := range r.on(ts).rows() {
		if at := re.FindStringIndex(row); at != nil {
			return term.Width(row[:at[0]]), y
		}
	}
	ts.Fatalf("%s: nothing on the screen matches /%s/", what, source(re))
	return 0, 0
}

// rowCol reads ROW,COL.
func rowCol(text string) (row, col int, ok bool) {
	a, b, ok := strings.Cut(text, ",")
	row, errRow := strconv.Atoi(a)
	col, errCol := strconv.Atoi(b)
	return row, col, ok && errRow == nil && errCol == nil
}
