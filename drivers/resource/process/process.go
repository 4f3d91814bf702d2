// Package process holds processes of this machine. A process is imperative: it
// can be looked at and held, but its state can't be kept or made again. It is
// known by its pid and the time it began, so that one that got its pid later
// is never taken for it.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/procfs"
)

// Driver holds processes.
type Driver struct{}

var (
	_ resource.Driver  = Driver{}
	_ resource.Handled = Driver{}
)

// Look implements resource.Driver: target is a pid.
func (Driver) Look(_ context.Context, target string) (dag.Resource, error) {
	pid, err := strconv.Atoi(target)
	if err != nil || pid <= 0 {
		return dag.Resource{}, core.Invalid("target", target, "process: and the pid of a process that runs")
	}
	began, ok := start(pid)
	if !ok {
		return dag.Resource{}, core.Invalid("target", target, "the pid of a process that runs")
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return dag.Resource{}, fmt.Errorf("tell this start of the machine from others: %w", err)
	}
	return dag.Resource{
		ID: fmt.Sprintf("process-%d-%s", pid, began), Kind: dag.ResourceURI, Name: fmt.Sprintf("process:%d", pid),
		Capabilities: []dag.Capability{}, Imperative: true,
		Metadata: resource.Metadata("process", "", map[string]string{
			"uri": fmt.Sprintf("process:%d", pid), "pid": target, "started": began, "boot": string(bytes.TrimSpace(boot)),
		}),
	}, nil
}

// known is what is kept of a process.
type known struct {
	PID     string `json:"pid"`
	Started string `json:"started"`
	Boot    string `json:"boot"`
}

func (Driver) Handle(r dag.Resource) dag.Handle {
	var k known
	_ = core.DecodeStored(r.Metadata, &k) // Look wrote it
	return dag.Handle{ID: "handle-" + r.ID, ResourceRef: r.ID, Provider: "process", ProviderID: k.PID + "@" + k.Started}
}

func (Driver) Probe(_ context.Context, r dag.Resource) (dag.Liveness, error) {
	var k known
	if err := core.DecodeStored(r.Metadata, &k); err != nil {
		return dag.LiveUnknown, fmt.Errorf("read the metadata of %s: %w", r.ID, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return dag.LiveUnknown, fmt.Errorf("tell this start of the machine from others: %w", err)
	}
	pid, err := strconv.Atoi(k.PID)
	if err != nil || string(bytes.TrimSpace(boot)) != k.Boot {
		return dag.Dead, nil
	}
	if began, ok := start(pid); !ok || began != k.Started {
		return dag.Dead, nil
	}
	return dag.Alive, nil
}

// start is when a process began, in clock ticks since the machine did; false
// for one that has ended.
func start(pid int) (string, bool) {
	s, err := procfs.Read(pid)
	if err != nil || s.Dead() {
		return "", false
	}
	return strconv.FormatUint(s.Start, 10), true
}

// unsupported is the answer to everything that would need the state.
func unsupported(what string, r string) error {
	return core.Errorf(core.Conflict, "%s: unsupported: the state of a process (%s) can't be kept", what, r).With("outcome", "unsupported")
}

func (Driver) Snapshot(_ context.Context, _, _ string, r dag.Resource, _ *dag.ExtRef) (resource.Taken, error) {
	return resource.Taken{}, unsupported("snapshot", r.ID)
}

func (Driver) Restore(_ context.Context, _, _ string, _ dag.Snapshot, r dag.Resource, _ string) (dag.Resource, error) {
	return dag.Resource{}, unsupported("restore", r.ID)
}

func (Driver) Undo(context.Context, string, string, dag.Resource, string) error { return nil }

func (Driver) Drop(context.Context, string, dag.Snapshot) error { return nil }

func (Driver) Sweep(context.Context, string) error { return nil }
