package coder

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// TestRealCreationRefusesWhatTheDeploymentDoesNotHave asks a real Coder for agents that
// can't be: each is refused at once, with the field, and nothing is made.
func TestRealCreationRefusesWhatTheDeploymentDoesNotHave(t *testing.T) {
	ctx := context.Background()
	d := realCoder(t)
	m, tasked := newMachine(t, d, nil), newMachine(t, d, map[string]any{"task": true})
	e := realFleet(t, t.TempDir())
	expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
	for _, c := range []struct {
		project, role string
		set           settings
		field, names  string // an allowed one that the error names
	}{
		{"No such", "coder", settings{}, "project", m.project},
		{m.project, "chief", settings{}, "role", "coder, reviewer"},
		{m.project, "coder", settings{Template: "nowhere"}, "options.template", "a template"},
		{m.project, "coder", settings{Via: "magic"}, "options.via", "workspace, task"},
		{m.project, "coder", settings{Via: "task"}, "options.via", "coder_ai_task"},
		{m.project, "coder", settings{Interrupt: "kill"}, "options.interrupt", "ctrl-c"},
		{m.project, "coder", settings{Parameters: map[string]string{"size": "big"}}, "options.parameters", "no other parameters"},
		{tasked.project, "coder", settings{Via: "task", Parameters: map[string]string{"size": "big"}}, "options.parameters", "a Task takes no parameters"},
	} {
		began := time.Now()
		_, err := e.Fleet.Create(ctx, alice, fleet.Create{
			Name: m.name, Project: c.project, Role: c.role, Runtime: "coder", Options: m.record(t, c.set).Options, Task: "say no",
		})
		if took := time.Since(began); !errors.Is(err, core.Kind(core.InvalidInput)) || core.AsError(err).Details["field"] != c.field ||
			!strings.Contains(err.Error(), c.names) || took > 10*time.Second {
			t.Errorf("%s %s %+v: %v, after %s", c.project, c.role, c.set, err, took)
		}
	}
	_, err := e.Fleet.Agent(ctx, alice.Tenant, m.name)
	expect.Err(t, err, core.Kind(core.NotFound), "a refused agent is there")
	_, err = m.client.WorkspaceByOwnerAndName(ctx, codersdk.Me, m.name, noOptions)
	expect.True(t, gone(explain("", err)), "a refused agent has a workspace: %v", err)
	// A template that was made just now is known.
	late := newMachine(t, d, nil)
	_, err = e.Fleet.Create(ctx, alice, fleet.Create{Name: late.name, Project: late.project, Runtime: "coder", Options: late.record(t, settings{}).Options})
	expect.True(t, err == nil, "%v", err)
	_, err = e.Fleet.Create(ctx, alice, fleet.Create{Name: tasked.name, Project: tasked.project, Runtime: "coder", Options: tasked.record(t, settings{Via: "task"}).Options})
	expect.True(t, err == nil, "%v", err)
}

// TestRealBuildThatFailsShowsTheEndOfItsLog has a template fail in the midst of its
// build, as terraform does.
func TestRealBuildThatFailsShowsTheEndOfItsLog(t *testing.T) {
	ctx := context.Background()
	d := realCoder(t)
	m := newMachine(t, d, map[string]any{"fail": "terraform apply: exit status 1", "says": []string{
		"docker_image.main: Creating...", "docker_image.main: Still creating... \x1b[31m[10s elapsed]",
		"Error: Unable to find or pull image", "Error:   on main.tf line 150, in resource \"docker_container\" \"workspace\"", "Error: no space left on device", "bye",
	}})
	e := realFleet(t, t.TempDir())
	expect.Of(e.Swarm.CreateTenant(ctx, alice, alice.Tenant))(t)
	expect.Of(e.Fleet.Create(ctx, alice, fleet.Create{Name: m.name, Project: m.project, Runtime: "coder", Options: m.record(t, settings{}).Options}))(t)
	a := awaitAgent(t, e, m.name, is(fleet.Failed))
	for _, text := range []string{"start failed: terraform apply: exit status 1", "Unable to find or pull image", "no space left on device"} {
		expect.Has(t, a.Reason, text, "the reason lacks")
	}
	log := ""
	expect.Await(t, "its log", func() bool { log = logOf(t, e, m.name); return log != "" })
	if !strings.Contains(log, "docker_image.main: Creating...\n") || !strings.Contains(log, "\nbye\n") || strings.Contains(log, "\x1b") || strings.Count(log, "bye") != 1 {
		t.Errorf("log %q", log)
	}
}
