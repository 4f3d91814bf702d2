package presence_test

import (
	"slices"
	"sync"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/presence"
	"swarmdeck/expect"
)

func TestEveryoneSeesWhoIsHereAndWhatTheyLookAt(t *testing.T) {
	var rung []string
	b := presence.New(nil, func(tenant string) { rung = append(rung, tenant) })
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
	made := b.NobodySince("t_c")
	expect.True(t, b.NobodySince("t_a").IsZero() && !made.IsZero(), "somebody is here, and where nobody came it is since the start")
	bob.Leave()
	expect.True(t, b.NobodySince("t_a").After(made), "since the last one left")
	expect.True(t, len(b.Here("t_a")) == 0 && len(b.Here("t_b")) == 1, "who left is still here, or who stayed is not")
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
