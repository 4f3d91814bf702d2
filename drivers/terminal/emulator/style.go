package emulator

import "swarmdeck/engine/terminal"

// restyle changes how characters look from now on, as SGR says.
func restyle(pen *terminal.Style, params []param) {
	if len(params) == 0 {
		*pen = terminal.Style{}
	}
	for i := 0; i < len(params); {
		n := 1
		for i+n < len(params) && params[i+n].sub {
			n++
		}
		i += max(1, restyleBy(pen, params[i:], n))
	}
}

// restyleBy takes the first number and those that belong to it, group of them by
// their marks, and says how many they were.
func restyleBy(pen *terminal.Style, params []param, group int) (took int) {
	set := func(a terminal.Attrs) { pen.Attrs |= a }
	drop := func(a terminal.Attrs) { pen.Attrs &^= a }
	switch n := max(0, params[0].n); {
	case n == 0:
		*pen = terminal.Style{}
	case n == 1:
		set(terminal.Bold)
	case n == 2:
		set(terminal.Faint)
	case n == 3:
		set(terminal.Italic)
	case n == 4 && group > 1 && params[1].n == 0:
		drop(terminal.Underline)
	case n == 4, n == 21:
		set(terminal.Underline)
	case n == 7:
		set(terminal.Reverse)
	case n == 8:
		set(terminal.Conceal)
	case n == 22:
		drop(terminal.Bold | terminal.Faint)
	case n == 23:
		drop(terminal.Italic)
	case n == 24:
		drop(terminal.Underline)
	case n == 27:
		drop(terminal.Reverse)
	case n == 28:
		drop(terminal.Conceal)
	case n >= 30 && n <= 37:
		pen.FG = terminal.Palette(uint8(n - 30))
	case n == 39:
		pen.FG = 0
	case n >= 40 && n <= 47:
		pen.BG = terminal.Palette(uint8(n - 40))
	case n == 49:
		pen.BG = 0
	case n >= 90 && n <= 97:
		pen.FG = terminal.Palette(uint8(n - 82))
	case n >= 100 && n <= 107:
		pen.BG = terminal.Palette(uint8(n - 92))
	case n == 38, n == 48, n == 58:
		color, took, ok := colorOf(params, group)
		switch {
		case ok && n == 38:
			pen.FG = color
		case ok && n == 48:
			pen.BG = color
		}
		return took
	}
	return group
}

// colorOf is a colour by its number or parts: 5;N, 2;R;G;B, or both with colons,
// where a colour space may stand before the parts.
func colorOf(params []param, group int) (c terminal.Color, took int, ok bool) {
	list := params[1:group]
	if group == 1 {
		list = params[1:]
	}
	if len(list) == 0 {
		return 0, len(params), false
	}
	need := map[int]int{5: 2, 2: 4}[list[0].n]
	if group == 1 {
		group = 1 + max(1, min(need, len(list)))
	} else if len(list) > 4 && list[0].n == 2 {
		list = append([]param{list[0]}, list[2:]...)
	}
	if need == 0 || len(list) < need {
		return 0, group, false
	}
	for _, p := range list[1:need] {
		if p.n > 255 {
			return 0, group, false
		}
	}
	part := func(i int) uint8 { return uint8(max(0, list[i].n)) }
	if need == 2 {
		return terminal.Palette(part(1)), group, true
	}
	return terminal.RGB(part(1), part(2), part(3)), group, true
}
