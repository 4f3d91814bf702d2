package coder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// facts are what a workspace's status follows from.
type facts struct {
	build      codersdk.WorkspaceStatus
	transition codersdk.WorkspaceTransition
	jobError   string
	dormant    bool
	agent      *codersdk.WorkspaceAgent // nil: none yet
	appHealth  codersdk.WorkspaceAppHealth
	report     *codersdk.WorkspaceAppStatus // fresh: of this build
}

// factsOf reads a workspace. Its newest app status outlives a stop and a
// start, so one from before the build says nothing about now.
func factsOf(ws *codersdk.Workspace, slug string) facts {
	b := &ws.LatestBuild
	f := facts{build: b.Status, transition: b.Transition, jobError: b.Job.Error, dormant: ws.DormantAt != nil, agent: agentOf(ws)}
	if app := appOf(ws, slug); app != nil {
		f.appHealth = app.Health
	}
	if s := ws.LatestAppStatus; s != nil && s.CreatedAt.After(b.CreatedAt) {
		f.report = s
	}
	return f
}

// agentOf is the workspace's own agent: sub-agents have a parent.
func agentOf(ws *codersdk.Workspace) *codersdk.WorkspaceAgent {
	for r := range ws.LatestBuild.Resources {
		agents := ws.LatestBuild.Resources[r].Agents
		for i := range agents {
			if !agents[i].ParentID.Valid {
				return &agents[i]
			}
		}
	}
	return nil
}

// appOf is the app that serves agentapi: the one named, else the only one,
// else the one of the usual name.
func appOf(ws *codersdk.Workspace, slug string) *codersdk.WorkspaceApp {
	a := agentOf(ws)
	if a == nil {
		return nil
	}
	if slug == "" && len(a.Apps) == 1 {
		return &a.Apps[0]
	}
	if i := slices.IndexFunc(a.Apps, func(app codersdk.WorkspaceApp) bool { return app.Slug == cmp.Or(slug, defaultSlug) }); i >= 0 {
		return &a.Apps[i]
	}
	return nil
}

// row is one line of the status table.
type row struct {
	status fleet.AgentStatus
	reason string // of what is seen; "" for none. %s is replaced by why
	when   func(f facts) (applies bool, why string)
}

// table says how an agent is; the first row that applies counts. Two choices
// in it: a start that was cancelled is a failure, because somebody must start
// it again; and an agent that reports a failure of its work is idle, because
// it takes the next task.
var table = []row{
	{fleet.Failed, "the workspace's %s", func(f facts) (bool, string) {
		return f.build == codersdk.WorkspaceStatusFailed, verb(f.transition) + " failed" + because(f.jobError)
	}},
	{fleet.Failed, "the workspace's %s was cancelled", func(f facts) (bool, string) {
		return f.build == codersdk.WorkspaceStatusCanceled, verb(f.transition)
	}},
	{fleet.Offline, "the workspace is dormant: Coder has put it away because nobody used it", func(f facts) (bool, string) {
		return f.dormant, ""
	}},
	{fleet.Offline, "the workspace is %s", func(f facts) (bool, string) {
		switch f.build {
		case codersdk.WorkspaceStatusStopping, codersdk.WorkspaceStatusStopped, codersdk.WorkspaceStatusDeleting,
			codersdk.WorkspaceStatusDeleted, codersdk.WorkspaceStatusCanceling:
			return true, string(f.build)
		}
		return false, ""
	}},
	{fleet.Starting, "the workspace is %s", func(f facts) (bool, string) {
		return f.build == codersdk.WorkspaceStatusPending || f.build == codersdk.WorkspaceStatusStarting, string(f.build)
	}},
	{fleet.Failed, "Coder names a state of the workspace that is not known here: %s", func(f facts) (bool, string) {
		return f.build != codersdk.WorkspaceStatusRunning, core.OneLine(string(f.build), 64)
	}},
	{fleet.Starting, "the workspace has no agent yet", func(f facts) (bool, string) { return f.agent == nil, "" }},
	{fleet.Failed, "the workspace's agent %s", func(f facts) (bool, string) {
		if f.agent.Status == codersdk.WorkspaceAgentTimeout {
			return true, "did not connect in time"
		}
		switch f.agent.LifecycleState {
		case codersdk.WorkspaceAgentLifecycleStartError:
			return true, "failed in its start script"
		case codersdk.WorkspaceAgentLifecycleStartTimeout:
			return true, "is late: its start script takes too long"
		}
		return false, ""
	}},
	{fleet.Failed, "the agent's app is unhealthy", func(f facts) (bool, string) {
		return f.appHealth == codersdk.WorkspaceAppHealthUnhealthy, ""
	}},
	{fleet.Offline, "the workspace's agent is %s", func(f facts) (bool, string) {
		if f.agent.Status == codersdk.WorkspaceAgentDisconnected {
			return true, "disconnected"
		}
		switch s := f.agent.LifecycleState; s {
		case codersdk.WorkspaceAgentLifecycleShuttingDown, codersdk.WorkspaceAgentLifecycleShutdownTimeout,
			codersdk.WorkspaceAgentLifecycleShutdownError, codersdk.WorkspaceAgentLifecycleOff:
			return true, strings.ReplaceAll(string(s), "_", " ")
		}
		return false, ""
	}},
	{fleet.Starting, "the workspace's agent is %s", func(f facts) (bool, string) {
		if f.agent.Status == codersdk.WorkspaceAgentConnecting {
			return true, "connecting"
		}
		switch s := f.agent.LifecycleState; s {
		case codersdk.WorkspaceAgentLifecycleCreated, codersdk.WorkspaceAgentLifecycleStarting:
			return true, string(s)
		}
		return false, ""
	}},
	{fleet.Busy, "%s", func(f facts) (bool, string) {
		if f.report == nil || f.report.State != codersdk.WorkspaceAppStatusStateWorking {
			return false, ""
		}
		return true, "works on something that was not given to it here" + because(f.report.Message)
	}},
	{fleet.Idle, "its last work failed%s", func(f facts) (bool, string) {
		return f.report != nil && failedState(f.report.State), because(reportText(f.report))
	}},
	{fleet.Idle, "", func(facts) (bool, string) { return true, "" }},
}

// statusOf reads the table.
func statusOf(f facts) (fleet.AgentStatus, string) {
	for _, r := range table {
		if ok, why := r.when(f); ok {
			return r.status, strings.Replace(r.reason, "%s", why, 1)
		}
	}
	return fleet.Failed, "no row of the table applies"
}

// failedState knows both words: the server hands the app's own on.
func failedState(s codersdk.WorkspaceAppStatusState) bool {
	return s == codersdk.WorkspaceAppStatusStateFailure || s == "failed"
}

func verb(t codersdk.WorkspaceTransition) string {
	switch t {
	case codersdk.WorkspaceTransitionStart, codersdk.WorkspaceTransitionStop, codersdk.WorkspaceTransitionDelete:
		return string(t)
	}
	return "build"
}

func because(text string) string {
	if text = core.OneLine(text, 450); text != "" {
		return ": " + text
	}
	return ""
}

func reportText(s *codersdk.WorkspaceAppStatus) string {
	if s == nil {
		return ""
	}
	return s.Message
}

// showReport is a report as a line of the log.
func showReport(s codersdk.WorkspaceAppStatus) (level, text string) {
	level, text = "INFO", core.OneLine(string(s.State), 32)+because(s.Message)
	if uri := core.OneLine(s.URI, 300); uri != "" {
		text = fmt.Sprintf("%s <%s>", text, uri)
	}
	if failedState(s.State) {
		level = "WARN"
	}
	return level, text
}

// reports are the app statuses of a workspace's current build, oldest first.
func reports(ws *codersdk.Workspace) (list []codersdk.WorkspaceAppStatus) {
	if a := agentOf(ws); a != nil {
		for _, app := range a.Apps {
			list = append(list, app.Statuses...)
		}
	}
	sortReports(list)
	return list
}

func sortReports(list []codersdk.WorkspaceAppStatus) {
	core.Sort(list, func(a, b codersdk.WorkspaceAppStatus) int { return a.CreatedAt.Compare(b.CreatedAt) })
}
