package coder

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// backend is one way to have an agent in Coder. It is chosen for each
// workspace by what that is, never by the server's version.
type backend interface {
	// create asks for the workspace.
	create(ctx context.Context, o order) (*codersdk.Workspace, error)
	// send gives the agent a task. A working agent refuses with AgentBusyError.
	send(ctx context.Context, ws *codersdk.Workspace, text string) error
	// interrupt presses the key that stops its work.
	interrupt(ctx context.Context, ws *codersdk.Workspace) error
	// remove asks for the end of the workspace.
	remove(ctx context.Context, ws *codersdk.Workspace) error
	// history is what the server still knows of reports, oldest first.
	history(ctx context.Context, ws *codersdk.Workspace) ([]codersdk.WorkspaceAppStatus, error)
	// log is the conversation so far.
	log(ctx context.Context, ws *codersdk.Workspace) ([]message, error)
	// status is "stable" or "running".
	status(ctx context.Context, ws *codersdk.Workspace) (string, error)
	// follow hands on what happens after all that has happened, see app.events.
	follow(ctx context.Context, ws *codersdk.Workspace, open func(), each func(update)) error
}

// order is what a workspace is to be made of.
type order struct {
	name     string
	project  project
	preset   codersdk.Preset
	settings settings
}

// backendOf chooses for a workspace that is there, or by the options for one
// that is to be made.
func backendOf(s *site, set settings, ws *codersdk.Workspace) backend {
	plain := workspaces{s, set}
	if ws != nil && ws.TaskID.Valid || ws == nil && set.Via == "task" {
		return tasks{plain}
	}
	return plain
}

// workspaces are plain workspaces with agentapi behind the app proxy.
type workspaces struct {
	*site
	set settings
}

var _ backend = workspaces{}

func (b workspaces) create(ctx context.Context, o order) (*codersdk.Workspace, error) {
	req := codersdk.CreateWorkspaceRequest{
		// The version whose presets were read, not one that came meanwhile.
		TemplateVersionID: o.project.ActiveVersionID, Name: o.name, TemplateVersionPresetID: o.preset.ID,
	}
	if p := o.project.parameter(promptParameter); o.settings.Greeting != "" || p != nil && p.Required {
		req.RichParameterValues = append(req.RichParameterValues, codersdk.WorkspaceBuildParameter{Name: promptParameter, Value: o.settings.greeting()})
	}
	for name, value := range o.settings.Parameters {
		req.RichParameterValues = append(req.RichParameterValues, codersdk.WorkspaceBuildParameter{Name: name, Value: value})
	}
	ws, err := call(ctx, "create the workspace", func(ctx context.Context) (codersdk.Workspace, error) {
		return b.client.CreateUserWorkspace(ctx, codersdk.Me, req)
	})
	return &ws, err
}

func (b workspaces) app(ws *codersdk.Workspace) *app { return appAt(b.client, ws, b.set.AppSlug) }

func (b workspaces) send(ctx context.Context, ws *codersdk.Workspace, text string) error {
	a := b.app(ws)
	status, err := a.status(ctx)
	if err != nil {
		return err
	}
	if status != "stable" {
		return busy(ws.Name, "its status is "+status)
	}
	return a.post(ctx, "user", text)
}

func (b workspaces) interrupt(ctx context.Context, ws *codersdk.Workspace) error {
	return b.app(ws).post(ctx, "raw", b.set.interruptKey())
}

func (b workspaces) remove(ctx context.Context, ws *codersdk.Workspace) error {
	return b.build(ctx, ws.ID, codersdk.WorkspaceTransitionDelete, false)
}

func (b workspaces) history(ctx context.Context, ws *codersdk.Workspace) ([]codersdk.WorkspaceAppStatus, error) {
	builds, err := call(ctx, "read the workspace's builds", func(ctx context.Context) ([]codersdk.WorkspaceBuild, error) {
		return b.client.WorkspaceBuilds(ctx, codersdk.WorkspaceBuildsRequest{WorkspaceID: ws.ID, Pagination: codersdk.Pagination{Limit: 20}})
	})
	var list []codersdk.WorkspaceAppStatus
	for _, build := range builds {
		list = append(list, reports(&codersdk.Workspace{LatestBuild: build})...)
	}
	sortReports(list)
	return list, err
}

func (b workspaces) log(ctx context.Context, ws *codersdk.Workspace) ([]message, error) {
	return b.app(ws).messages(ctx)
}

func (b workspaces) status(ctx context.Context, ws *codersdk.Workspace) (string, error) {
	return b.app(ws).status(ctx)
}

func (b workspaces) follow(ctx context.Context, ws *codersdk.Workspace, open func(), each func(update)) error {
	return b.app(ws).events(ctx, open, each)
}

// tasks are workspaces that belong to a Task. What the Tasks API has no call
// for goes to the agent's app, as with a plain workspace.
type tasks struct{ workspaces }

var _ backend = tasks{}

func (b tasks) create(ctx context.Context, o order) (*codersdk.Workspace, error) {
	if len(o.settings.Parameters) > 0 {
		return nil, core.Invalid("options.parameters", len(o.settings.Parameters), "none: a Task takes no parameters")
	}
	task, err := call(ctx, "create the Task", func(ctx context.Context) (codersdk.Task, error) {
		return b.client.CreateTask(ctx, codersdk.Me, codersdk.CreateTaskRequest{
			TemplateVersionID: o.project.ActiveVersionID, TemplateVersionPresetID: o.preset.ID, Name: o.name, Input: o.settings.greeting(),
		})
	})
	if err != nil {
		return nil, err
	}
	if !task.WorkspaceID.Valid {
		return nil, core.Errorf(core.Unavailable, "create the Task: it has no workspace")
	}
	return b.workspace(ctx, task.WorkspaceID.UUID)
}

func (b tasks) send(ctx context.Context, ws *codersdk.Workspace, text string) error {
	_, err := call(ctx, "send to the Task", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.client.TaskSend(ctx, codersdk.Me, ws.TaskID.UUID, codersdk.TaskSendRequest{Input: text})
	})
	if err == nil {
		return nil
	}
	// A Task that works is refused like one that can't be reached: ask which.
	if core.AsError(err).Details["status"] == http.StatusBadGateway {
		if status, failed := b.status(ctx, ws); failed == nil && status == "running" {
			return busy(ws.Name, "its status is running")
		}
	}
	return err
}

func (b tasks) remove(ctx context.Context, ws *codersdk.Workspace) error {
	_, err := call(ctx, "delete the Task", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.client.DeleteTask(ctx, codersdk.Me, ws.TaskID.UUID)
	})
	if gone(err) { // the Task is, its workspace is not
		return b.workspaces.remove(ctx, ws)
	}
	return err
}

func (b tasks) log(ctx context.Context, ws *codersdk.Workspace) ([]message, error) {
	logs, err := call(ctx, "read the Task's log", func(ctx context.Context) (codersdk.TaskLogsResponse, error) {
		return b.client.TaskLogs(ctx, codersdk.Me, ws.TaskID.UUID)
	})
	list := make([]message, 0, len(logs.Logs))
	for _, l := range logs.Logs {
		role := "agent"
		if l.Type == codersdk.TaskLogTypeInput {
			role = "user"
		}
		list = append(list, message{l.ID, role, l.Content})
	}
	return list, err
}

const (
	// maxSaid is how many bytes of the end of a build that failed are its reason.
	maxSaid = 350
	// maxLines is how many lines of it are in the agent's log.
	maxLines = 30
)

// buildFault is why a build failed, in its own words.
type buildFault struct {
	build uuid.UUID
	text  string
}

// whyFailed reads what a build that failed said at last: why are its errors, or else its
// last lines, and lines the end of its log. Nothing is what can't be read.
func (s *site) whyFailed(ctx context.Context, build uuid.UUID) (why string, lines []string) {
	logs, err := call(ctx, "read the build's log", func(ctx context.Context) (logs []codersdk.ProvisionerJobLog, err error) {
		res, err := s.client.Request(ctx, http.MethodGet, apiPath+"workspacebuilds/"+build.String()+"/logs", nil)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return nil, codersdk.ReadBodyAsError(res)
		}
		return logs, json.NewDecoder(io.LimitReader(res.Body, maxEvent)).Decode(&logs)
	})
	if err != nil {
		return "", nil
	}
	var errs, all []string
	for _, l := range logs {
		line := core.OneLine(l.Output, 200)
		if line == "" {
			continue
		}
		if all = append(all, line); l.Level == codersdk.LogLevelError {
			errs = append(errs, line)
		}
	}
	lines = all[max(0, len(all)-maxLines):]
	if len(errs) > 0 {
		all = errs
	}
	first, size := len(all), 0
	for first > 0 && size+len(all[first-1]) <= maxSaid {
		first--
		size += len(all[first]) + len("; ")
	}
	return strings.Join(all[first:], "; "), lines
}

// heard reads why the newest build failed, once.
func (a *agent) heard(ws *codersdk.Workspace) {
	b := &ws.LatestBuild
	a.mu.Lock()
	known := a.why.build == b.ID
	a.mu.Unlock()
	if known || b.Status != codersdk.WorkspaceStatusFailed {
		return
	}
	text, lines := a.site.whyFailed(a.life, b.ID)
	a.mu.Lock()
	a.why = buildFault{b.ID, text}
	told := a.mem.Failed == b.ID.String()
	if len(lines) > 0 {
		a.mem.Failed = b.ID.String()
	}
	a.mu.Unlock()
	if told || len(lines) == 0 {
		return
	}
	a.say(fleet.Event{Type: "log", Level: "WARN", Text: "the workspace's " + verb(b.Transition) + " failed; its log ends with\n" + strings.Join(lines, "\n")})
	_ = a.keep() // else the next engine tells it again
}

// facts are those of the newest picture of the workspace; mu is held.
func (a *agent) facts() facts {
	f := factsOf(a.ws, a.set.AppSlug)
	if a.why.build == a.ws.LatestBuild.ID && a.why.text != "" {
		f.jobError = strings.TrimPrefix(f.jobError+": "+a.why.text, ": ")
	}
	return f
}
