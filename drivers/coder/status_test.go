package coder

import (
	"strings"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// picture is a workspace in a state.
func picture(change func(ws *codersdk.Workspace, a *codersdk.WorkspaceAgent)) *codersdk.Workspace {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ws := &codersdk.Workspace{LatestBuild: codersdk.WorkspaceBuild{
		CreatedAt: at, Status: codersdk.WorkspaceStatusRunning, Transition: codersdk.WorkspaceTransitionStart,
		Resources: []codersdk.WorkspaceResource{{Agents: []codersdk.WorkspaceAgent{
			{Name: "sub", ParentID: uuid.NullUUID{Valid: true}, Status: codersdk.WorkspaceAgentTimeout},
			{
				Name: "main", Status: codersdk.WorkspaceAgentConnected, LifecycleState: codersdk.WorkspaceAgentLifecycleReady,
				Apps: []codersdk.WorkspaceApp{{Slug: "other", Health: codersdk.WorkspaceAppHealthUnhealthy}, {Slug: defaultSlug}},
			},
		}}},
	}}
	if change != nil {
		change(ws, &ws.LatestBuild.Resources[0].Agents[1])
	}
	return ws
}

func TestStatusTable(t *testing.T) {
	build := func(s codersdk.WorkspaceStatus) func(*codersdk.Workspace, *codersdk.WorkspaceAgent) {
		return func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) { ws.LatestBuild.Status = s }
	}
	agent := func(s codersdk.WorkspaceAgentStatus, l codersdk.WorkspaceAgentLifecycle) func(*codersdk.Workspace, *codersdk.WorkspaceAgent) {
		return func(_ *codersdk.Workspace, a *codersdk.WorkspaceAgent) { a.Status, a.LifecycleState = s, l }
	}
	report := func(s codersdk.WorkspaceAppStatusState, after time.Duration) func(*codersdk.Workspace, *codersdk.WorkspaceAgent) {
		return func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) {
			ws.LatestAppStatus = &codersdk.WorkspaceAppStatus{State: s, Message: "why\x1b[1m", CreatedAt: ws.LatestBuild.CreatedAt.Add(after)}
		}
	}
	connected := codersdk.WorkspaceAgentConnected
	for name, c := range map[string]struct {
		change func(*codersdk.Workspace, *codersdk.WorkspaceAgent)
		want   fleet.AgentStatus
		reason string
	}{
		"ready": {nil, fleet.Idle, ""},
		"failed": {func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) {
			ws.LatestBuild.Status, ws.LatestBuild.Job.Error = "failed", "no\nquota"
		}, fleet.Failed, "the workspace's start failed: no quota"},
		"cancelled": {build("canceled"), fleet.Failed, "start was cancelled"},
		"pending":   {build("pending"), fleet.Starting, "pending"}, "starting": {build("starting"), fleet.Starting, "starting"},
		"stopping": {build("stopping"), fleet.Offline, "stopping"}, "stopped": {build("stopped"), fleet.Offline, "stopped"},
		"deleting": {build("deleting"), fleet.Offline, "deleting"}, "deleted": {build("deleted"), fleet.Offline, "deleted"},
		"canceling":       {build("canceling"), fleet.Offline, "canceling"},
		"something new":   {build("melting\x1b[1m"), fleet.Failed, "not known here: melting"},
		"dormant":         {func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) { ws.DormantAt = new(time.Time) }, fleet.Offline, "dormant"},
		"no agent":        {func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) { ws.LatestBuild.Resources = nil }, fleet.Starting, "no agent"},
		"connecting":      {agent("connecting", "created"), fleet.Starting, "connecting"},
		"timeout":         {agent("timeout", "created"), fleet.Failed, "did not connect"},
		"disconnected":    {agent("disconnected", "ready"), fleet.Offline, "disconnected"},
		"created":         {agent(connected, "created"), fleet.Starting, "created"},
		"agent starting":  {agent(connected, "starting"), fleet.Starting, "starting"},
		"start error":     {agent(connected, "start_error"), fleet.Failed, "failed in its start script"},
		"start timeout":   {agent(connected, "start_timeout"), fleet.Failed, "late"},
		"shutting down":   {agent(connected, "shutting_down"), fleet.Offline, "shutting down"},
		"shutdown error":  {agent(connected, "shutdown_error"), fleet.Offline, "shutdown error"},
		"off":             {agent(connected, "off"), fleet.Offline, "off"},
		"unhealthy":       {func(_ *codersdk.Workspace, a *codersdk.WorkspaceAgent) { a.Apps[1].Health = "unhealthy" }, fleet.Failed, "unhealthy"},
		"working":         {report("working", time.Second), fleet.Busy, "why"},
		"stale working":   {report("working", -time.Second), fleet.Idle, ""},
		"idle report":     {report("idle", time.Second), fleet.Idle, ""},
		"complete":        {report("complete", time.Second), fleet.Idle, ""},
		"failure":         {report("failure", time.Second), fleet.Idle, "its last work failed: why"},
		"failed, by Task": {report("failed", time.Second), fleet.Idle, "its last work failed"},
	} {
		status, reason := statusOf(factsOf(picture(c.change), ""))
		expect.True(t, status == c.want && strings.Contains(reason, c.reason) && (c.reason != "" || reason == "") && !strings.ContainsAny(reason, "\x1b\n"),
			"%s: %s %q, want %s %q", name, status, reason, c.want, c.reason)
	}
}

func TestTheAppIsTheOneNamedOrTheOnlyOne(t *testing.T) {
	ws := picture(nil)
	a := appOf(ws, "other")
	expect.True(t, a != nil && a.Slug == "other", "%+v", a)
	a = appOf(ws, "none")
	expect.True(t, a == nil, "%+v", a)
	agent := &ws.LatestBuild.Resources[0].Agents[1]
	agent.Apps = agent.Apps[:1]
	a = appOf(ws, "")
	expect.True(t, a != nil && a.Slug == "other", "%+v", a)
}
