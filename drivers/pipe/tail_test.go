package pipe

import (
	"slices"
	"testing"
)

func TestATailKeepsTheNewest(t *testing.T) {
	tail := Tail[int]{Most: 3, Bytes: 10}
	for i := range 5 {
		tail.Add(i, 1)
	}
	if got, gone := tail.Take(); !slices.Equal(got, []int{2, 3, 4}) || gone != 2 {
		t.Errorf("%v, %d gone", got, gone)
	}
	tail.Add(1, 6)
	tail.Add(2, 6)
	if got, gone := tail.Take(); !slices.Equal(got, []int{2}) || gone != 1 {
		t.Errorf("%v, %d gone", got, gone)
	}
	tail.Add(1, 11)
	if got, gone := tail.Take(); len(got) != 0 || gone != 1 {
		t.Errorf("%v, %d gone", got, gone)
	}
}
