package exec

import (
	"context"
	"slices"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestAnAgentSaysWhatItsWallLacks(t *testing.T) {
	for _, c := range []struct {
		without []string
		line    string
		lacks   string
	}{
		{[]string{"name spaces", "cgroup"}, "WARN the wall around it lacks: name spaces, cgroup; swarmdeck doctor says why", "name spaces, cgroup"},
		{[]string{"cgroup"}, "", ""},
	} {
		sup := drivertest.Cells(t, cell.Options{Instance: "lacks", Without: c.without})
		r := expect.Of(NewRuntime(sup, RuntimeOptions{Dir: t.TempDir()}))(t)
		w := &watch{}
		h := expect.Of(r.Open(context.Background(), fleet.Agent{Name: "a", TenantID: "t_test", Profile: "open", Command: sh(steady)}, w.notify))(t)
		for range 2 {
			ask(t, h, w.prompt("go"))
		}
		said := slices.DeleteFunc(w.texts("log"), func(line string) bool { return line != c.line })
		if got := w.last().Lacks; got != c.lacks || c.line != "" && len(said) != 1 || c.line == "" && len(w.texts("log")) == 0 {
			t.Errorf("without %v: lacks %q, said %q", c.without, got, w.texts("log"))
		}
		expect.No(t, h.Close())
		expect.No(t, sup.Close())
	}
}
