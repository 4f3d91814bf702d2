package command

import (
	"testing"

	"swarmdeck/expect"
)

// A command that is made without its neighbours is listed under the name that
// it gives itself, helps as it does beside them, and is alone.
func TestACommandIsTheSameWithoutTheOthers(t *testing.T) {
	all := newTree(&Env{}, t.Context())
	for _, p := range all.sections() {
		for _, c := range p.tops {
			alone := treeFor(&Env{}, t.Context(), []string{c.name})
			whole, one := all.find([]string{c.name}), alone.find([]string{c.name})
			expect.Must(t, whole != nil && one != nil && whole.Name() == c.name && one.Name() == c.name, "%s is not found under that name", c.name)
			if whole.GroupID != one.GroupID || whole.UsageString() != one.UsageString() {
				t.Errorf("%s is used in two ways:\n%s\n%s", c.name, whole.UsageString(), one.UsageString())
			}
			if made := len(alone.root.Commands()); c.name != "completion" && made != 2 { // it and help
				t.Errorf("%d commands are made for %s", made, c.name)
			}
		}
	}
}
