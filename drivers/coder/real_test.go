package coder

import (
	"context"
	"errors"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestRealAgentIsCreatedWorksAndIsDeleted(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	r := newRuntime(t, Options{})
	rec := m.record(t, settings{})
	rec.Role = "reviewer"
	w := openAgent(t, r, rec)
	w.await(fleet.Idle, "")
	ws, err := m.client.WorkspaceByOwnerAndName(context.Background(), "me", m.name, noOptions)
	if err != nil || w.now().WorkspaceID != ws.ID.String() {
		t.Fatalf("workspace %v, health %+v, %v", ws.ID, w.now(), err)
	}
	parameters, err := m.client.WorkspaceBuildParameters(context.Background(), ws.LatestBuild.ID)
	expect.True(t, err == nil && len(parameters) == 2 && strings.Contains(string(core.MustEncode(parameters)), "You read it."),
		"parameters %v, %v", parameters, err)
	out, err := w.Prompt(context.Background(), w.prompt("say hello", "say on"))
	expect.True(t, err == nil && out.Status == task.Succeeded && strings.Contains(string(out.Output), "on"), "outcome %+v %v", out, err)
	expect.Is(t, w.said(), "message hello|message on", "said")
	expect.No(t, w.Close())
	expect.No(t, r.Forget(context.Background(), rec))
	m.awaitGone(t)
}

func TestRealBusyAgentRefuses(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	done := expect.Later(func() task.Outcome {
		out, _ := w.Prompt(context.Background(), w.prompt("say up", "hang"))
		return out
	})
	expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
	_, err := w.Prompt(context.Background(), w.prompt("say two"))
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && core.AsError(err).Details["error"] == "AgentBusyError", "second prompt: %v", err)
	w.Interrupt()
	out := <-done
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	out, err = w.Prompt(context.Background(), w.prompt("say next"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "outcome %+v %v", out, err)
}
