package coder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// played is a deployment with one ready workspace, whose agent is an actor.
type played struct {
	*actor
	srv *httptest.Server
	// app, if set, is what serves agentapi in place of the actor.
	app http.Handler

	mu      sync.Mutex
	ws      codersdk.Workspace
	streams int
	builds  []codersdk.WorkspaceTransition
	cut     chan struct{} // closed and replaced to end the streams
	refuse  int           // status of all calls; 0 serves them
	deaf    int           // so many streams of the workspace are never opened
	dumb    int           // so many of the agent
	mute    bool          // they are, but say nothing
	logs    []codersdk.ProvisionerJobLog
}

func newPlayed(t *testing.T) *played {
	t.Setenv("CODER_SESSION_TOKEN", secret)
	p := &played{actor: newActor(), cut: make(chan struct{})}
	p.ws = *picture(func(ws *codersdk.Workspace, _ *codersdk.WorkspaceAgent) {
		ws.ID, ws.Name, ws.OwnerName, ws.LatestBuild.ID = uuid.New(), "bob", "alice", uuid.New()
		ws.LatestBuild.Job.Status = codersdk.ProvisionerJobSucceeded
	})
	p.srv = httptest.NewServer(p)
	t.Cleanup(func() {
		p.srv.CloseClientConnections()
		p.srv.Close()
	})
	return p
}

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	refuse, ws, cut, actor := p.refuse, p.ws, p.cut, p.actor
	p.mu.Unlock()
	path := r.URL.Path
	switch {
	case refuse != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(refuse)
		_, _ = w.Write([]byte(`{"message":"no"}`))
	case strings.HasSuffix(path, "/events") && p.silent(w):
		<-r.Context().Done()
	case strings.HasPrefix(path, "/@alice/bob.main/apps/ccw/"):
		r.URL.Path = strings.TrimPrefix(path, "/@alice/bob.main/apps/ccw")
		if p.app != nil {
			p.app.ServeHTTP(w, r)
			return
		}
		actor.ServeHTTP(w, r)
	case strings.HasSuffix(path, "/watch"):
		p.mu.Lock()
		p.streams++
		deaf := p.streams <= p.deaf
		p.mu.Unlock()
		if deaf {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		data, _ := json.Marshal(ws)
		fmt.Fprintf(w, "event: ping\n\nevent: data\ndata: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	case strings.HasSuffix(path, "/builds") && r.Method == http.MethodPost:
		var in codersdk.CreateWorkspaceBuildRequest
		_ = json.NewDecoder(r.Body).Decode(&in)
		p.mu.Lock()
		p.builds = append(p.builds, in.Transition)
		p.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
	case strings.HasSuffix(path, "/logs"):
		answer(w, p.logs)
	case path == "/api/v2/templates":
		answer(w, []codersdk.Template{{ID: uuid.New(), Name: "maze", DisplayName: "Maze", ActiveVersionID: uuid.New()}})
	case strings.HasSuffix(path, "/rich-parameters"):
		answer(w, []codersdk.TemplateVersionParameter{{Name: promptParameter}, {Name: systemParameter}})
	case strings.HasSuffix(path, "/presets"):
		answer(w, []codersdk.Preset{{ID: uuid.New(), Name: "runner"}})
	case strings.HasSuffix(path, "/builds"):
		answer(w, []codersdk.WorkspaceBuild{ws.LatestBuild})
	case strings.HasPrefix(path, "/api/v2/workspaces/"), strings.HasPrefix(path, "/api/v2/users/me/workspace/"):
		answer(w, ws)
	default: // an older server, without the stream of all workspaces
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"Route not found."}`))
	}
}

// silent reports whether a stream of the agent is to say nothing.
func (p *played) silent(w http.ResponseWriter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dumb > 0 {
		p.dumb--
		return true
	}
	if p.mute {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
	}
	return p.mute
}

// change does something and ends the streams.
func (p *played) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.cut)
	p.cut = make(chan struct{})
}

func (p *played) open(t *testing.T, r *Runtime) *witness {
	return openAgent(t, r, fleet.Agent{
		Name: "bob", TenantID: "t_test", Project: "p", Role: "r", CreatedAt: time.Now(),
		Options: core.MustEncode(settings{URL: p.srv.URL, Adopt: true}),
	})
}

func TestAStreamThatEndsIsOpenedAgain(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	p.streamed(t, 1) // it is idle by what it was told before
	p.change(func() { p.ws.LatestBuild.Status = codersdk.WorkspaceStatusStopped })
	w.await(fleet.Offline, "stopped")
	p.change(func() { p.ws.LatestBuild.Status = codersdk.WorkspaceStatusRunning })
	w.await(fleet.Idle, "")
	p.streamed(t, 2)
}

// streamed waits until so many streams were opened.
func (p *played) streamed(t *testing.T, n int) {
	t.Helper()
	expect.Await(t, fmt.Sprint(n, " streams"), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.streams >= n
	})
}

func TestABuildThatFailedIsToldInItsOwnWords(t *testing.T) {
	p := newPlayed(t)
	p.logs = []codersdk.ProvisionerJobLog{
		{Level: codersdk.LogLevelInfo, Output: "docker_image.main: Creating..."},
		{Level: codersdk.LogLevelError, Output: "Error: no space left on device"},
		{Level: codersdk.LogLevelError, Output: "  on main.tf line 7"},
		{Level: codersdk.LogLevelInfo, Output: "bye"},
	}
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	p.change(func() {
		p.ws.LatestBuild.ID = uuid.New()
		p.ws.LatestBuild.Status, p.ws.LatestBuild.Job.Error = codersdk.WorkspaceStatusFailed, "terraform apply: exit status 1"
	})
	w.await(fleet.Failed, "terraform apply: exit status 1: Error: no space left on device; on main.tf line 7")
}

func TestAnUnknownTemplateOrRoleIsRefusedAtOnce(t *testing.T) {
	p := newPlayed(t)
	r := newRuntime(t, Options{})
	for _, c := range []struct{ project, role, template, bad string }{
		{"Maze", "runner", "", ""},
		{"Labyrinth", "runner", "", "project: "},
		{"Maze", "walker", "", "role: "},
		{"Maze", "runner", "swamp", "options.template: "},
	} {
		err := r.Check(fleet.Create{
			Name: "bob", Project: c.project, Role: c.role, Options: core.MustEncode(settings{URL: p.srv.URL, Template: c.template}),
		})
		expect.Says(t, err, c.bad, c)
	}
	p.srv.Close() // it may be back when the workspace is made
	err := newRuntime(t, Options{}).Check(fleet.Create{Name: "bob", Project: "x", Role: "y", Options: core.MustEncode(settings{URL: p.srv.URL})})
	expect.True(t, err == nil, "a deployment that is away: %v", err)
}

func TestAStreamThatDoesNotOpenIsGivenUp(t *testing.T) {
	p := newPlayed(t)
	p.deaf = 1
	p.ws.LatestBuild.Status = codersdk.WorkspaceStatusStarting
	w := p.open(t, newRuntime(t, Options{Patience: 300 * time.Millisecond}))
	p.streamed(t, 1)
	p.change(func() { p.ws.LatestBuild.Status = codersdk.WorkspaceStatusRunning })
	w.await(fleet.Idle, "")
}

func TestADeploymentThatRefusesShowsWhyAndIsTriedAgain(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	for status, reason := range map[int]string{401: "token", 503: "503"} {
		p.change(func() { p.refuse = status })
		w.await(fleet.Offline, reason)
		p.change(func() { p.refuse = 0 })
		w.await(fleet.Idle, "")
	}
	p.change(func() { p.refuse = 404 })
	w.await(fleet.Failed, "deleted in Coder")
}

func TestATaskThatCantBeSentIsNotTaken(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	p.set("running") // somebody works with the agent in Coder itself
	_, err := w.Prompt(context.Background(), w.prompt("say no"))
	expect.True(t, errors.Is(err, core.Kind(core.Conflict)) && core.AsError(err).Details["error"] == "AgentBusyError", "%v", err)
	w.await(fleet.Busy, "not given to it here")
	p.set("stable")
	w.await(fleet.Idle, "")
	out, err := w.Prompt(context.Background(), w.prompt("say yes"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "%+v %v", out, err)
}

func TestADeploymentThatGoesAwayDuringATaskMayComeBack(t *testing.T) {
	p := newPlayed(t)
	release := make(chan struct{})
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	p.begun = func(string) {
		go func() {
			<-release
			p.add("agent", "late words")
		}()
	}
	done := expect.Later(func() task.Outcome {
		out, _ := w.Prompt(context.Background(), w.prompt("say up", "hang"))
		return out
	})
	expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
	p.change(func() { p.refuse = 503 })
	p.srv.CloseClientConnections()
	w.await(fleet.Offline, "")
	close(release)
	p.change(func() { p.refuse = 0 })
	w.await(fleet.Idle, "")
	expect.Await(t, "late words", func() bool { return strings.Contains(w.said(), "late words") })
	w.Interrupt()
	out := <-done
	expect.True(t, out.Status == task.Cancelled, "%+v", out)
	got := w.said()
	expect.True(t, strings.Count(got, "message up") == 1, "said %q, want nothing twice", got)
}

func TestATaskFailsWhenItsAgentBeginsAnewWithoutAWord(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	p.begun = func(string) {
		go func() { // it is at work, has said nothing, and another takes its place at once
			p.comesTo(t, "running")
			p.change(func() {
				close(p.gone)
				p.actor = newActor()
			})
		}()
	}
	out, err := w.Prompt(context.Background(), w.prompt("hang"))
	expect.True(t, err == nil && out.Status == task.Failed && out.Error.Retryable, "%+v %v, want a retryable failure", out, err)
	now := w.await(fleet.Idle, "")
	expect.True(t, now.Restarts == 1 && w.was(fleet.Offline), "health %+v, want it to have been away and one restart", now)
}

func TestATaskFailsWhenTheDeploymentStaysAway(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{Patience: 300 * time.Millisecond}))
	w.await(fleet.Idle, "")
	done := expect.Later(func() task.Outcome {
		out, _ := w.Prompt(context.Background(), w.prompt("say up", "hang"))
		return out
	})
	expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
	p.change(func() { p.refuse = 503 })
	p.srv.CloseClientConnections()
	out := <-done
	expect.True(t, out.Status == task.Failed && out.Error.Retryable, "%+v", out)
}

func TestATaskEndsWhateverItsStreamKeepsBack(t *testing.T) {
	for name, silence := range map[string]func(p *played){
		"a stream that does not open": func(p *played) { p.dumb = 1 },
		"a stream that says nothing":  func(p *played) { p.mute = true },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayed(t)
			w := p.open(t, newRuntime(t, Options{Patience: 300 * time.Millisecond}))
			w.await(fleet.Idle, "")
			p.change(func() { silence(p) })
			out, err := w.Prompt(context.Background(), w.prompt("say up"))
			if err != nil || out.Status != task.Succeeded || !strings.Contains(w.said(), "message up") {
				t.Errorf("%+v %v, said %q", out, err, w.said())
			}
		})
	}
}

func TestAWorkingAgentCantBePaused(t *testing.T) {
	p := newPlayed(t)
	w := p.open(t, newRuntime(t, Options{}))
	w.await(fleet.Idle, "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = w.Prompt(context.Background(), w.prompt("say up", "hang"))
	}()
	expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
	expect.Err(t, w.Pause(context.Background()), core.Kind(core.Unavailable))
	w.Interrupt()
	<-done
	expect.No(t, w.Pause(context.Background()))
}

func TestTheKeyThatInterruptsIsTheOptions(t *testing.T) {
	for key, want := range map[string]string{"": "\x1b", "ctrl-c": "\x03"} {
		p := newPlayed(t)
		w := openAgent(t, newRuntime(t, Options{}), fleet.Agent{
			Name: "bob", TenantID: "t_test", CreatedAt: time.Now(), Options: core.MustEncode(settings{URL: p.srv.URL, Adopt: true, Interrupt: key}),
		})
		w.await(fleet.Idle, "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = w.Prompt(context.Background(), w.prompt("say up", "hang"))
		}()
		expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
		w.Interrupt()
		<-done
		p.actor.mu.Lock()
		expect.Is(t, p.keys, want, "keys")
		p.actor.mu.Unlock()
	}
}
