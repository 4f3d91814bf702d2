package modelproxy

import (
	"maps"
	"net/url"
	"slices"
	"testing"

	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestAnAgentCantTakeTheRoomOfOthers(t *testing.T) {
	p := New()
	defer p.Close()
	open := func() []*line {
		all := expect.Of(p.Open(Upstreams{"A_URL": &url.URL{}, "B_URL": &url.URL{}}, nil, func(fleet.Event) func(fleet.Event) { return nil }))(t)
		return slices.Collect(maps.Values(all.lines))
	}
	hog, other := open(), open()
	var all []*hold
	fill := func(lines []*line) (n int) { // with bodies as long as they may be
		for i := range maxOpen {
			h := &hold{of: lines[i%len(lines)].run}
			if all = append(all, h); h.grow(maxAsked/2) && h.grow(maxAsked) {
				n++
			}
		}
		return n
	}
	const most = maxShare / maxAsked
	expect.Is(t, fill(hog), most)
	expect.True(t, (&hold{of: hog[0].run}).grow(small), "a short one is not")
	expect.Is(t, fill(other), most)
	for range maxHeld/maxShare - 2 {
		fill(open())
	}
	last := open()
	n := fill(last)
	expect.True(t, n == 0 && (&hold{of: last[0].run}).grow(small), "%d long bodies are kept when all room is taken, or not even a short one is", n)
	for _, h := range all {
		h.drop()
	}
	expect.Is(t, p.held.Load()+hog[0].run.held.Load()+other[0].run.held.Load(), 0, "bytes are held by nobody")
	expect.Is(t, fill(last), most)
}

func TestWhatIsTooLongHoldsNothing(t *testing.T) {
	p := New()
	c := p.run().capture(maxAsked)
	for range maxAsked / small {
		c.write(make([]byte, small))
	}
	expect.Is(t, p.held.Load(), maxAsked-small, "bytes are held of one that fits")
	c.write([]byte{0})
	data, why := c.plain("")
	expect.True(t, p.held.Load() == 0 && data == nil && why != "", "%d bytes are held of one that does not", p.held.Load())
}
