package grid

import (
	"slices"
	"strings"
)

// Column is one column of a grid. What is in it says how wide it is: no cell is cut, and
// no column left out, while there is room in the row.
type Column struct {
	Title    string
	Min      int  // cells of what is in it that it must show to be of use; at least 1, at least 8 with Key
	Weight   int  // its share of what room there is for texts that don't all fit; 0 is what comes first
	Priority int  // 0 stays; of the others the highest goes first when there is no room, and from Spare on before any text is cut
	Key      bool // names the row: stays, never narrower than 8
	Right    bool // numbers
	Middle   bool // ids and paths: cut in the middle
	ID       bool // ids, of which the end is shown, see Ending
	Fill     bool // is made for the width that it gets: Min, and the cells that nothing else needs
}

// Spare is the least priority of columns that are shown only where nothing is cut.
const Spare = 20

// Least width of a key column, the gap between columns, and to what texts are widened
// where there is room, so that columns seldom move.
const (
	minKey = 8
	gap    = 1
	step   = 4
)

// ending is how many digits of an id are shown at least.
const ending = 4

// Ending is the end of an id of the engine that tells it from others of its kind, and
// that commands take for it: "0042" of tk_bf4fc_0000000042. Any other text is whole.
func Ending(id string) string {
	at := strings.LastIndexByte(id, '_') + 1
	digits := id[at:]
	if at < 2 || len(digits) <= ending || strings.Trim(digits, "0123456789") != "" {
		return id
	}
	return digits[min(len(digits)-len(strings.TrimLeft(digits, "0")), len(digits)-ending):]
}

// Endings is a text with the ends alone of the ids in it.
func Endings(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		id := strings.TrimRight(w, ",.:;)")
		words[i] = Ending(id) + w[len(id):]
	}
	return strings.Join(words, " ")
}

// layout finds how wide columns are.
type layout struct {
	cols   []Column
	needs  []int // cells that show all that is in a column in sight; 0 is nothing
	widths []int // 0 is not shown
	turns  []int // columns in the order in which they are given room
	shown  []int // those that may be shown, in order
	picked bool  // somebody chose them: none goes for being of little use
	sort   int   // the column of the sort sign, -1 for none
}

func (l *layout) reset(cols []Column) {
	l.cols = cols
	l.needs, l.widths, l.turns = make([]int, len(cols)), make([]int, len(cols)), make([]int, 0, len(cols))
	l.choose(nil)
}

// choose has these columns shown, in this order; nil is all of them, as they matter.
func (l *layout) choose(cols []int) {
	l.shown, l.picked = cols, cols != nil
	for i := range l.cols {
		if !l.picked {
			l.shown = append(l.shown, i)
		}
	}
}

// need is what a column takes when there is room: it and its title are whole.
func (l *layout) need(i int) int {
	title := len(l.cols[i].Title)
	if l.sort == i {
		title++ // for the sign
	}
	return max(l.needs[i], title, 1)
}

// eased is need with room for texts that are a little longer.
func (l *layout) eased(i int) int {
	if l.cols[i].Weight > 0 {
		return (l.need(i) + step - 1) / step * step
	}
	return max(l.need(i), l.cols[i].Min)
}

// least is what it takes to be of use.
func (l *layout) least(i int) int {
	c := &l.cols[i]
	least := max(c.Min, 1)
	if c.Key {
		least = max(c.Min, minKey)
	}
	return min(least, l.need(i))
}

// spare says that a column has room only where nothing is cut: nothing is in it, or
// little of use.
func (l *layout) spare(i int) bool {
	return !l.stays(i) && (l.needs[i] == 0 || l.cols[i].Priority >= Spare)
}

// stays says that a column is left out last.
func (l *layout) stays(i int) bool { return l.picked || l.cols[i].Key || l.cols[i].Priority == 0 }

// whole is the width at which nothing that is in sight is cut of columns with a priority
// below one: a column with nothing in it needs none, unless it stays.
func (l *layout) whole(below int) int {
	w := -gap
	for _, i := range l.shown {
		if l.needs[i] > 0 && l.cols[i].Priority < below || l.stays(i) {
			w += l.eased(i) + gap
		}
	}
	return max(w, 0)
}

// fit fills widths for w cells: first those columns that stay, then the others as they
// matter, each with what it needs to be of use; then what is left over goes to what is
// cut, and then to columns that are spare.
func (l *layout) fit(w int) {
	clear(l.widths)
	l.turns = append(l.turns[:0], l.shown...)
	slices.SortStableFunc(l.turns, func(a, b int) int {
		return l.turn(a) - l.turn(b)
	})
	left := w + gap // n columns have n-1 gaps
	for _, i := range l.turns {
		if l.spare(i) {
			continue
		}
		if least := l.least(i) + gap; least <= left || l.stays(i) {
			l.widths[i] = least - gap
			left -= least
		}
	}
	for _, i := range slices.Backward(l.shown) {
		if left >= 0 || l.cols[i].Key || l.widths[i] == 0 {
			continue
		}
		if spare := l.widths[i] - 1; spare >= -left {
			l.widths[i] += left
			left = 0
		} else {
			left += l.widths[i] + gap
			l.widths[i] = 0
		}
	}
	if left > 0 {
		l.share(left)
	}
}

// turn is when a column is given room, lowest first.
func (l *layout) turn(i int) int {
	if l.stays(i) {
		return 0
	}
	return l.cols[i].Priority
}

// share gives left cells to the shown columns that are cut: to those without a weight,
// and then by weight. What is left is for the spare ones, eases them, and fills.
func (l *layout) share(left int) {
	for i := range l.cols {
		if l.widths[i] > 0 && l.cols[i].Weight == 0 {
			n := min(max(l.need(i)-l.widths[i], 0), left)
			l.widths[i] += n
			left -= n
		}
	}
	left = l.pour(left, l.need)
	for _, empty := range []bool{false, true} {
		for _, i := range l.turns {
			if n := l.least(i) + gap; l.spare(i) && (l.needs[i] == 0) == empty && n <= left {
				l.widths[i] = n - gap
				left -= n
			}
		}
		left = l.pour(left, l.need)
		left = l.pour(left, l.eased)
	}
	if i := l.filler(); i >= 0 && l.widths[i] > 0 {
		l.widths[i] += left
	}
}

// filler is the column that fills, -1 for none.
func (l *layout) filler() int {
	return slices.IndexFunc(l.cols, func(c Column) bool { return c.Fill })
}

// pour gives left cells by weight to the shown columns that have fewer than they want,
// and returns those that nobody wants.
func (l *layout) pour(left int, want func(i int) int) int {
	for left > 0 {
		total := 0
		for i := range l.cols {
			if l.widths[i] > 0 && l.widths[i] < want(i) {
				total += max(l.cols[i].Weight, 1)
			}
		}
		if total == 0 {
			break
		}
		room := left
		for i := range l.cols {
			if lacks := want(i) - l.widths[i]; l.widths[i] > 0 && lacks > 0 {
				n := min(max(room*max(l.cols[i].Weight, 1)/total, 1), lacks, left)
				l.widths[i] += n
				left -= n
			}
		}
	}
	return left
}
