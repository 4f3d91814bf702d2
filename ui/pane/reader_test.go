package pane

import (
	"context"
	"testing"
)

func TestReadsNeverPileUp(t *testing.T) {
	reads := 0
	read := func(context.Context) (int, error) { reads++; return reads, nil }
	r := NewReader[int]("x")
	if r.Read("", read) != nil {
		t.Fatal("nothing is read")
	}
	first := r.Read("a", read)
	for range 3 {
		if r.Read("a", read) != nil {
			t.Fatal("reads pile up")
		}
	}
	got, ok := r.Take("a", bodies(first)[0])
	if !ok || got.Got != 1 || !got.Again {
		t.Fatalf("%+v, %v: the change in between was forgotten", got, ok)
	}
	if got, ok := r.Take("a", bodies(r.Read("a", read))[0]); !ok || got.Again {
		t.Fatalf("%+v, %v", got, ok)
	}
}

func TestAReplyThatIsNoLongerWantedIsDropped(t *testing.T) {
	read := func(context.Context) (int, error) { return 1, nil }
	r := NewReader[int]("x")
	late := bodies(r.Read("a", read))
	if r.Read("b", read) == nil {
		t.Fatal("the next thing waits for the one before")
	}
	if _, ok := r.Take("b", late[0]); ok {
		t.Fatal("it took the reply about a for b")
	}
	// Nothing was read of the next one: what is out keeps nobody waiting.
	r = NewReader[int]("x")
	late = bodies(r.Read("a", read))
	if _, ok := r.Take("b", late[0]); ok || r.Read("a", read) == nil {
		t.Fatal("a is never read again")
	}
	if _, ok := r.Take("a", "something else"); ok {
		t.Fatal("it took another pane's reply")
	}
}
