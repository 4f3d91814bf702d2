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
