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
	expect.True(t, r.Imperative && len(r.Capabilities) == 0 && !r.Restorable(), "%+v", r)
	h := d.Handle(r)
	expect.True(t, h.Provider == "process" && strings.HasPrefix(h.ProviderID, strconv.Itoa(cmd.Process.Pid)+"@") && h.ResourceRef == r.ID, "%+v", h)
	l, err := d.Probe(t.Context(), r)
	expect.True(t, l == dag.Alive && err == nil, "%v %v", l, err)
	expect.No(t, cmd.Process.Kill())
	_ = cmd.Wait()
	l, err = d.Probe(t.Context(), r)
	expect.True(t, l == dag.Dead && err == nil, "%v %v", l, err)
	_, err = d.Snapshot(t.Context(), "t_test", "s", r, nil)
	expect.True(t, core.AsError(err).Code == core.Conflict && strings.Contains(err.Error(), "unsupported"), "%v", err)
	expect.Is(t, core.AsError(expect.Fault(d.Restore(t.Context(), "t_test", "s", dag.Snapshot{}, r, ""))).Code, core.Conflict)
}

func TestAnotherProcessOfThePidIsNotTakenForIt(t *testing.T) {
	var d process.Driver
	r := expect.Of(d.Look(t.Context(), strconv.Itoa(os.Getpid())))(t)
	r.Metadata = core.Raw(strings.Replace(string(r.Metadata), `"started":"`, `"started":"1`, 1))
	l, err := d.Probe(t.Context(), r)
	expect.True(t, l == dag.Dead && err == nil, "%v %v", l, err)
	for _, target := range []string{"", "x", "-1", "0", "999999999", "1 2"} {
		_, err := d.Look(t.Context(), target)
		expect.True(t, core.AsError(err).Code == core.InvalidInput && strings.Contains(err.Error(), "target"), "%q: %v", target, err)
	}
}
