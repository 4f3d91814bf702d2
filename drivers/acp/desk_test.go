package acp

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// desk is an engine with one agent, whose wire is written down.
type desk struct {
	t     *testing.T
	eng   *engine.Engine
	model *model.Server // of a real agent, nil of one that is played
	by    core.Caller
	name  string
	dir   string
	tape  tape
	late  time.Duration // limit of a task that is to go past it, at the least
	began time.Time     // the newest task
	slow  time.Duration // the longest that one took to ask
	spent int64         // by all tasks so far
	told  int64         // of that, by the wire
}

// newDesk opens the engine and waits for the agent. Its wire goes to a file of dir.
func newDesk(t *testing.T, a fleet.Agent, dir string, m *model.Server, models *modelproxy.Proxy) *desk {
	t.Helper()
	d := &desk{
		t: t, model: m, by: core.Caller{Tenant: "t_test", Name: "alice", Kind: core.Operator, Door: core.DoorCLI},
		name: a.Name, dir: a.Dir, tape: tape{t, filepath.Join(dir, "wire")}, late: 20 * time.Second,
	}
	if m != nil {
		teed(t, &a, dir, d.tape.file, drivertest.Installed(t))
	} else {
		teed(t, &a, dir, d.tape.file)
	}
	path := filepath.Join(t.TempDir(), "desk.db")
	sealer := expect.Of(audit.OpenSealer(path + ".key"))(d.t)
	db := expect.Of(store.Open(path, store.Options{Seal: sealer.Seal}))(d.t)
	runtime, err := NewRuntime(drivertest.Cells(t, cell.Options{}), Options{Local: keeper.Local{State: t.TempDir(), Dir: t.TempDir(), Models: models}, Patience: 3 * time.Minute})
	d.no(err)
	d.eng, err = engine.Open(t.Context(), engine.Options{Store: db, Sealer: sealer, Spill: t.TempDir(), Runtimes: map[string]fleet.Runtime{"acp": runtime}})
	d.no(err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := expect.Later(func() error { return d.eng.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		expect.Is(t, <-ran, nil)
		_ = d.eng.Close()
		_ = db.Close()
	})
	expect.Of(d.eng.Swarm.CreateTenant(t.Context(), d.by, d.by.Tenant))(d.t)
	_, err = d.eng.Fleet.Create(t.Context(), d.by, fleet.Create{
		Name: a.Name, Project: "p", Runtime: "acp", Command: a.Command, Env: a.Env, Dir: a.Dir, Options: a.Options,
	})
	d.no(err)
	expect.Await(t, "it is idle", func() bool { return d.agent().Status == fleet.Idle })
	return d
}

func (d *desk) no(err error) {
	d.t.Helper()
	expect.No(d.t, err)
}

func (d *desk) agent() fleet.Agent {
	return expect.Of(d.eng.Fleet.Agent(context.Background(), d.by.Tenant, d.name))(d.t)
}

// file is one of the agent's directory.
func (d *desk) file(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) exists(name string) bool {
	_, err := os.Stat(d.file(name))
	return err == nil
}

// kill kills the agent's process.
func (d *desk) kill() {
	d.t.Helper()
	d.tape.killed()
	expect.Await(d.t, "what came before has come", d.playedOn)
	d.no(syscall.Kill(d.agent().PID, syscall.SIGKILL))
}

// playedOn reports whether a played agent is where it was killed.
func (d *desk) playedOn() bool {
	reached, _ := os.ReadFile(filepath.Join(filepath.Dir(d.tape.file), reachedFile))
	return d.model != nil || len(reached) == bytes.Count(d.tape.read(), []byte(killed+"\n"))
}

// begin gives the agent a task.
func (d *desk) begin(message string, timeout time.Duration) string {
	d.t.Helper()
	expect.Await(d.t, "it is idle", func() bool { return d.agent().Status == fleet.Idle })
	once := 1
	d.began = time.Now()
	t, err := d.eng.Swarm.Dispatch(d.t.Context(), d.by, swarm.Dispatch{
		Kind: fleet.KindPrompt, Agent: d.name, MaxAttempts: &once, Timeout: timeout,
		Input: core.MustEncode(map[string]string{"agent": d.name, "message": message}),
	})
	d.no(err)
	return t.TaskID
}

// open is an open approval that is sought, nil for none.
func (d *desk) open(sought func(judge.Approval) bool) *judge.Approval {
	d.t.Helper()
	open := expect.Of(d.eng.Judge.Open(context.Background(), d.by.Tenant))(d.t)
	if i := slices.IndexFunc(open, sought); i >= 0 {
		return &open[i]
	}
	return nil
}

// asked is the open approval of a task.
func (d *desk) asked(id string) judge.Approval {
	d.t.Helper()
	var found *judge.Approval
	expect.Await(d.t, "it asks", func() bool {
		found = d.open(func(a judge.Approval) bool { return a.TaskID == id })
		return found != nil
	})
	d.slow = max(d.slow, time.Since(d.began))
	return *found
}

func (d *desk) answer(id string, ans judge.Answer) {
	d.t.Helper()
	expect.Of(d.eng.Judge.Answer(d.t.Context(), d.by, d.asked(id).ApprovalID, ans))(d.t)
}
