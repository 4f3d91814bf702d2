package process_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/drivers/resource/process"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

func TestAProcessIsHeldUntilItEnds(t *testing.T) {
	var d process.Driver
	cmd := exec.Command("sleep", "60")
	expect.No(t, cmd.Start())
	r := expect.Of(d.Look(t.Context(), strconv.Itoa(cmd.Process.Pid)))(t)
	if !r.Imperative || len(r.Capabilities) > 0 || r.Restorable() {
		t.Errorf("%+v", r)
	}
	if h := d.Handle(r); h.Provider != "process" || !strings.HasPrefix(h.ProviderID, strconv.Itoa(cmd.Process.Pid)+"@") || h.ResourceRef != r.ID {
		t.Errorf("%+v", h)
	}
	if l, err := d.Probe(t.Context(), r); l != dag.Alive || err != nil {
		t.Error(l, err)
	}
	expect.No(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if l, err := d.Probe(t.Context(), r); l != dag.Dead || err != nil {
		t.Error(l, err)
	}
	if _, err := d.Snapshot(t.Context(), "t_test", "s", r, nil); core.AsError(err).Code != core.Conflict || !strings.Contains(err.Error(), "unsupported") {
		t.Error(err)
	}
	_, err := d.Restore(t.Context(), "t_test", "s", dag.Snapshot{}, r, "")
	expect.Is(t, core.AsError(err).Code, core.Conflict)
}

func TestAnotherProcessOfThePidIsNotTakenForIt(t *testing.T) {
	var d process.Driver
	r := expect.Of(d.Look(t.Context(), strconv.Itoa(os.Getpid())))(t)
	r.Metadata = core.Raw(strings.Replace(string(r.Metadata), `"started":"`, `"started":"1`, 1))
	if l, err := d.Probe(t.Context(), r); l != dag.Dead || err != nil {
		t.Error(l, err)
	}
	for _, target := range []string{"", "x", "-1", "0", "999999999", "1 2"} {
		if _, err := d.Look(t.Context(), target); core.AsError(err).Code != core.InvalidInput || !strings.Contains(err.Error(), "target") {
			t.Errorf("%q: %v", target, err)
		}
	}
}
