package pane

import (
	"context"
	"testing"

	"swarmdeck/expect"
)

func TestReadsNeverPileUp(t *testing.T) {
	reads := 0
	read := func(context.Context) (int, error) { reads++; return reads, nil }
	r := NewReader[int]("x")
	expect.Must(t, r.Read("", read) == nil, "nothing is read")
	first := r.Read("a", read)
	for range 3 {
		expect.Must(t, r.Read("a", read) == nil, "reads pile up")
	}
	got, ok := r.Take("a", bodies(first)[0])
	expect.Must(t, ok && got.Got == 1 && got.Again, "%+v, %v: the change in between was forgotten", got, ok)
	got, ok = r.Take("a", bodies(r.Read("a", read))[0])
	expect.Must(t, ok && !got.Again, "%+v, %v", got, ok)
}

func TestAReplyThatIsNoLongerWantedIsDropped(t *testing.T) {
	read := func(context.Context) (int, error) { return 1, nil }
	r := NewReader[int]("x")
	late := bodies(r.Read("a", read))
	expect.Must(t, r.Read("b", read) != nil, "the next thing waits for the one before")
	_, ok := r.Take("b", late[0])
	expect.Must(t, !ok, "it took the reply about a for b")
	// Nothing was read of the next one: what is out keeps nobody waiting.
	r = NewReader[int]("x")
	late = bodies(r.Read("a", read))
	_, ok = r.Take("b", late[0])
	expect.Must(t, !ok && r.Read("a", read) != nil, "a is never read again")
	_, ok = r.Take("a", "something else")
	expect.Must(t, !ok, "it took another pane's reply")
}
