package grid

// Column is one column of a grid.
type Column struct {
	Title    string
	Min      int  // cells it needs to be of use; at least 1, at least 8 with Key
	Weight   int  // its share of the cells that are left over; 0 takes none
	Priority int  // 0 stays; of the others the highest goes first when there is no room
	Key      bool // names the row: stays, never narrower than 8
	Right    bool // numbers
	Middle   bool // ids and paths: cut in the middle
}

// Least width of a key column, and the gap between columns.
const (
	minKey = 8
	gap    = 1
)

func (c *Column) min() int {
	if c.Key {
		return max(c.Min, minKey)
	}
	return max(c.Min, 1)
}

// layout fills widths for w cells: 0 means the column is not shown. Columns
// are dropped before any is made narrower than its Min; only when those that
// stay don't fit either are they narrowed, the key last.
func layout(cols []Column, w int, widths []int) {
	left := w
	for i := range cols {
		widths[i] = cols[i].min()
		left -= widths[i] + gap
	}
	left += gap // n columns have n-1 gaps
	for left < 0 {
		drop := -1
		for i := range cols {
			if widths[i] > 0 && !cols[i].Key && cols[i].Priority > 0 && (drop < 0 || cols[i].Priority >= cols[drop].Priority) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		left += widths[drop] + gap
		widths[drop] = 0
	}
	for i := len(cols) - 1; i >= 0 && left < 0; i-- {
		if cols[i].Key || widths[i] == 0 {
			continue
		}
		if spare := widths[i] - 1; spare >= -left {
			widths[i] += left
			left = 0
		} else {
			left += widths[i] + gap
			widths[i] = 0
		}
	}
	if left > 0 {
		share(cols, left, widths)
	}
}

// share gives left cells to the shown columns by weight, the rest to the
// first of them, so that every cell is used when any column takes some.
func share(cols []Column, left int, widths []int) {
	total := 0
	for i := range cols {
		if widths[i] > 0 {
			total += max(cols[i].Weight, 0)
		}
	}
	if total == 0 {
		return
	}
	given, first := 0, -1
	for i := range cols {
		if widths[i] > 0 && cols[i].Weight > 0 {
			n := left * cols[i].Weight / total
			widths[i] += n
			given += n
			if first < 0 {
				first = i
			}
		}
	}
	widths[first] += left - given
}
