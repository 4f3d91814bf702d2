package pipe

// Tail keeps the newest of what it is given, up to a number and a size in bytes.
type Tail[T any] struct {
	Most, Bytes int

	items []T
	sizes []int
	size  int
	gone  int
}

// Add takes one, of n bytes.
func (t *Tail[T]) Add(item T, n int) {
	t.items, t.sizes, t.size = append(t.items, item), append(t.sizes, n), t.size+n
	for len(t.items) > t.Most || t.size > t.Bytes {
		var none T
		t.size, t.items[0] = t.size-t.sizes[0], none
		t.items, t.sizes = t.items[1:], t.sizes[1:]
		t.gone++
	}
}

// Kept is what is kept, oldest first, until the next Add or Take.
func (t *Tail[T]) Kept() []T { return t.items }

// Take gives what was kept, oldest first, and how many were not.
func (t *Tail[T]) Take() (items []T, gone int) {
	items, gone = t.items, t.gone
	t.items, t.sizes, t.size, t.gone = nil, nil, 0, 0
	return items, gone
}

// Log is what a log passes on up to its bounds, and the last that comes after.
type Log[T any] struct {
	Lines, Bytes int
	Tail         Tail[T]

	lines, bytes int
	over         bool
}

// Passes counts one more of n bytes, and says whether it is to be passed on. Of what is
// not the last is kept; first says that nothing was before.
func (l *Log[T]) Passes(item T, n int) (passes, first bool) {
	if !l.over && l.lines < l.Lines && l.bytes+n <= l.Bytes {
		l.lines++
		l.bytes += n
		return true, false
	}
	first, l.over = !l.over, true
	l.Tail.Add(item, n)
	return false, first
}
