package pipe

import (
	"slices"
	"testing"

	"swarmdeck/expect"
)

func TestATailKeepsTheNewest(t *testing.T) {
	tail := Tail[int]{Most: 3, Bytes: 10}
	for i := range 5 {
		tail.Add(i, 1)
	}
	got, gone := tail.Take()
	expect.True(t, slices.Equal(got, []int{2, 3, 4}) && gone == 2, "%v, %d gone", got, gone)
	tail.Add(1, 6)
	tail.Add(2, 6)
	got, gone = tail.Take()
	expect.True(t, slices.Equal(got, []int{2}) && gone == 1, "%v, %d gone", got, gone)
	tail.Add(1, 11)
	got, gone = tail.Take()
	expect.True(t, len(got) == 0 && gone == 1, "%v, %d gone", got, gone)
}

func TestTheLastLineOfAnErrorIsTold(t *testing.T) {
	for text, want := range map[string]string{"one\ntwo\nthree \n\n": "three", "one": "one", "": ""} {
		expect.Is(t, LastLine(text), want, text)
	}
}
