package coder

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// logOf is the agent's log, oldest line first.
func logOf(t *testing.T, e *engine.Engine, name string) string {
	t.Helper()
	page := expect.Of(e.Fleet.Log(context.Background(), alice.Tenant, name, core.Filter{Size: 100}))(t)
	var all strings.Builder
	for i := len(page.Items) - 1; i >= 0; i-- {
		all.WriteString(page.Items[i].Message + "\n")
	}
	return all.String()
}

// TestRealWorkBegunInCoderIsNoticedWithinFiveSeconds talks to the agent as Coder's own
// page does, past swarmdeck: the agent shows busy, and what is said is in its log.
func TestRealWorkBegunInCoderIsNoticedWithinFiveSeconds(t *testing.T) {
	ctx := context.Background()
	d := realCoder(t)
	w := newTerminal(t, d)
	e := realFleet(t, t.TempDir())
	expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
	rec := w.record(t, settings{Interrupt: "ctrl-c"})
	expect.Of(e.Fleet.Create(ctx, alice, fleet.Create{Name: w.name, Project: w.project, Runtime: "coder", Options: rec.Options}))(t)
	awaitAgent(t, e, w.name, is(fleet.Idle))
	agent := func() fleet.Agent { return awaitAgent(t, e, w.name, func(fleet.Agent) bool { return true }) }
	within := func(what string, since time.Time, ok func() bool) time.Duration {
		t.Helper()
		expect.Await(t, what, ok)
		took := time.Since(since)
		expect.True(t, took <= 5*time.Second, "%s took %s", what, took)
		return took
	}
	for _, name := range []string{"first", "second"} {
		began := time.Now()
		w.ask("do " + name + " 16")
		taken := time.Since(began)
		busy := within("busy", began, func() bool { return agent().Status == fleet.Busy })
		told := within("what it was told", began, func() bool {
			return strings.Contains(logOf(t, e, w.name), "told elsewhere: do "+name+" 16\n")
		})
		a := agent()
		expect.True(t, strings.Contains(a.Reason, "not given to it here") && a.TaskID == "", "agent %+v", a)
		_, err := e.Fleet.Assign(ctx, alice, w.name, "do other 1", "")
		expect.True(t, core.AsError(err).Details["error"] == "AgentBusyError", "a task for an agent that works for somebody else: %v", err)
		expect.Await(t, "the end of "+name, func() bool { return w.stage("do "+name+" 16") == "done" })
		over := time.Now()
		answered := within("what it answered", over, func() bool { return strings.Contains(logOf(t, e, w.name), "did "+name) })
		within("idle", over, func() bool { return agent().Status == fleet.Idle })
		t.Logf("%s: agentapi took it in %s; busy after %s, told in the log after %s; the answer %s after its end", name, taken, busy, told, answered)
	}
	// A task of ours comes after, and is in the log as that alone.
	tk := expect.Of(e.Fleet.Assign(ctx, alice, w.name, "do third 2", ""))(t)
	awaitAgent(t, e, w.name, func(a fleet.Agent) bool { return a.LastTaskID == tk.TaskID && a.LastStatus == task.Succeeded })
	log := expect.Rests(t, "nothing more is told", func() string { return logOf(t, e, w.name) })
	for text, want := range map[string]int{"told elsewhere": 2, "did first": 1, "did second": 1, "did third": 1} {
		n := strings.Count(log, text)
		expect.True(t, n == want, "%d times %q in the log, want %d:\n%s", n, text, want, log)
	}
	// The record has each turn as a run that nobody here asked for, and its answer leads
	// to the question.
	for _, name := range []string{"first", "second"} {
		answers, err := e.DAG.Events(ctx, alice.Tenant, dag.Query{Filter: core.Filter{Match: "did " + name}})
		if err != nil || len(answers.Items) != 1 {
			t.Errorf("%d events hold %q (%v), want 1", len(answers.Items), "did "+name, err)
			continue
		}
		line := expect.Of(e.DAG.Lineage(ctx, alice.Tenant, dag.LineageQuery{Node: answers.Items[0].Event.Nodes[0].Ref(), Depth: 20}))(t)
		asked, err := e.DAG.Events(ctx, alice.Tenant, dag.Query{Filter: core.Filter{Match: "do " + name + " 16"}})
		if err != nil || len(asked.Items) != 1 || !slices.ContainsFunc(line.Steps, func(s dag.Step) bool { return s.Node == asked.Items[0].Event.Nodes[0].Ref() }) {
			t.Errorf("what %q was answered does not lead to it: %d events, %v", name, len(asked.Items), err)
		}
	}
}
