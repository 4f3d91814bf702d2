package presence_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/presence"
	"swarmdeck/expect"
)

// ticking is a clock that goes on by a second each time it is asked.
type ticking struct{ at time.Time }

func (c *ticking) Now() time.Time {
	c.at = c.at.Add(time.Second)
	return c.at
}

func TestEveryoneSeesWhoIsHereAndWhatTheyLookAt(t *testing.T) {
	var rung []string
	b := presence.New(&ticking{}, func(tenant string) { rung = append(rung, tenant) })
	ann := b.Enter("t_a", presence.Visitor{Name: "ann", Door: core.DoorCockpit})
	bob := b.Enter("t_a", presence.Visitor{Name: "bob", Door: core.DoorSSH})
	b.Enter("t_b", presence.Visitor{Name: "eve"})
	bob.Look("ap_1")
	bob.Look("ap_1") // nothing new
	ann.Leave()
	ann.Leave()
	ann.Look("ap_2")
	here := b.Here("t_a")
	expect.True(t, len(here) == 1 && here[0].Name == "bob" && here[0].Approval == "ap_1" && !here[0].Since.IsZero(), "%+v", here)
	want := []string{"t_a", "t_a", "t_b", "t_a", "t_a"}
	expect.True(t, slices.Equal(rung, want), "rung %v, want %v", rung, want)
	made, until := b.Away("t_c")
	expect.True(t, !made.IsZero() && until.IsZero(), "where nobody came it is since the start: %s, %s", made, until)
	from, until := b.Away("t_a")
	expect.True(t, from.Equal(made) && until.After(made) && !until.After(here[0].Since), "until the first one came: %s, %s", from, until)
	bob.Leave()
	left, until := b.Away("t_a")
	expect.True(t, left.After(made) && until.IsZero(), "since the last one left: %s, %s", left, until)
	b.Enter("t_a", presence.Visitor{Name: "cy"})
	from, until = b.Away("t_a")
	expect.True(t, from.Equal(left) && until.After(left), "until the next one came: %s, %s", from, until)
	b.Enter("t_a", presence.Visitor{Name: "dan"}).Leave()
	from, again := b.Away("t_a")
	expect.True(t, from.Equal(left) && again.Equal(until), "another came and went meanwhile: %s, %s", from, again)
	expect.True(t, len(b.Here("t_a")) == 1 && len(b.Here("t_b")) == 1, "who left is still here, or who stayed is not")
}

func TestVisitorsComeAndGoAtOnce(t *testing.T) {
	b := presence.New(nil, func(string) {})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			s := b.Enter("t_a", presence.Visitor{Name: "x"})
			s.Look("ap_1")
			b.Here("t_a")
			s.Leave()
		})
	}
	all.Wait()
	here := b.Here("t_a")
	expect.True(t, len(here) == 0, "%+v", here)
}
