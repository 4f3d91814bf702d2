package coder

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (m *machine) workspace(t *testing.T) codersdk.Workspace {
	t.Helper()
	return expect.Of(m.client.WorkspaceByOwnerAndName(context.Background(), codersdk.Me, m.name, noOptions))(t)
}

func TestRealProjectsAreTemplatesAndRolesPresets(t *testing.T) {
	d := realCoder(t)
	m, bare := newMachine(t, d, nil), newMachine(t, d, map[string]any{"bare": true})
	unnamed := newMachine(t, d, map[string]any{"display": ""})
	r := newRuntime(t, Options{})
	rec := m.record(t, settings{})
	offers := expect.Of(r.Catalog(context.Background(), rec.Options))(t)
	var found *fleet.Offer
	for i, o := range offers {
		switch o.Project.Name {
		case m.project:
			found = &offers[i]
		case bare.project, unnamed.project, "":
			t.Errorf("%+v is no project", o.Project)
		}
	}
	expect.Must(t, found != nil && len(found.Roles) == 2 && len(found.Project.ID) == 36 && found.Roles[0].ProjectID == found.Project.ID, "offer %+v", found)
	for _, c := range []struct{ project, role, want string }{
		{"No such", "coder", `project: "No such" is not allowed; allowed: `},
		{bare.project, "coder", "project: "},
		{m.project, "chief", `role: "chief" is not allowed; allowed: coder, reviewer`},
	} {
		rec := m.record(t, settings{})
		rec.Project, rec.Role = c.project, c.role
		openAgent(t, newRuntime(t, Options{}), rec).await(fleet.Failed, c.want)
	}
	_, err := m.client.WorkspaceByOwnerAndName(context.Background(), codersdk.Me, m.name, noOptions)
	expect.True(t, gone(explain("", err)), "a refused agent has a workspace: %v", err)
}

func TestRealTemplateThatNeedsAPromptGetsOne(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, map[string]any{"need": true})
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{Greeting: "Hold on."}))
	w.await(fleet.Idle, "")
	parameters, err := m.client.WorkspaceBuildParameters(context.Background(), m.workspace(t).LatestBuild.ID)
	expect.True(t, err == nil && strings.Contains(string(core.MustEncode(parameters)), "Hold on."), "parameters %v %v", parameters, err)
}

func TestRealWorkspaceOfTheNameIsNotTakenUnasked(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	first := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	id := first.await(fleet.Idle, "").WorkspaceID
	openAgent(t, newRuntime(t, Options{}), m.record(t, settings{})).await(fleet.Failed, "options.adopt takes it over")
	expect.No(t, first.Close())
	expect.Is(t, openAgent(t, newRuntime(t, Options{}), m.record(t, settings{Adopt: true})).await(fleet.Idle, "").WorkspaceID, id, "it adopted")
}

func TestRealWorkspaceWhoseCreationWasNotAnsweredIsUsed(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	r, rec := newRuntime(t, Options{}), m.record(t, settings{})
	first := openAgent(t, r, rec)
	id := first.await(fleet.Idle, "").WorkspaceID
	expect.No(t, first.Close())
	kept := expect.Of(r.recall(rec))(t)
	kept.Workspace = "" // as if the engine had died between the request and its answer
	expect.No(t, kept.write())
	expect.Is(t, openAgent(t, r, rec).await(fleet.Idle, "").WorkspaceID, id, "workspace")
}

func TestRealFailedBuildShowsItsReasonAndNotAStaleReport(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, map[string]any{"fail": "no machine left \x1b[31m"})
	openAgent(t, newRuntime(t, Options{}), m.record(t, settings{})).await(fleet.Failed, "start failed: no machine left")
}

func TestRealReportsMakeAnAgentBusyUntilItsNextBuild(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	m.role.report("working", "on my own")
	w.await(fleet.Busy, "on my own")
	expect.No(t, w.Restart(context.Background()))
	w.await(fleet.Starting, "")
	w.await(fleet.Idle, "")
	s := m.workspace(t).LatestAppStatus
	expect.True(t, s != nil && s.State == "working", "the server's status is %+v; it was to outlive the build", s)
	out, err := w.Prompt(context.Background(), w.prompt("say on"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "outcome %+v %v", out, err)
	got := w.said()
	expect.True(t, strings.HasPrefix(got, "log working: on my own|"), "said %q, want what was reported before first", got)
}

func TestRealDeletedWorkspaceIsMadeAgainByARestart(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	ws := m.workspace(t)
	_, err := m.client.CreateWorkspaceBuild(context.Background(), ws.ID, codersdk.CreateWorkspaceBuildRequest{Transition: codersdk.WorkspaceTransitionDelete})
	expect.No(t, err)
	w.await(fleet.Failed, "deleted in Coder")
	expect.No(t, w.Restart(context.Background()))
	expect.True(t, w.await(fleet.Idle, "").WorkspaceID != ws.ID.String(), "it has the deleted workspace's id")
}

func TestRealStoppedWorkspaceIsOfflineUntilItIsStarted(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	turn := func(to codersdk.WorkspaceTransition) {
		expect.Of(m.client.CreateWorkspaceBuild(context.Background(), m.workspace(t).ID, codersdk.CreateWorkspaceBuildRequest{Transition: to}))(t)
	}
	turn(codersdk.WorkspaceTransitionStop) // by somebody else
	w.await(fleet.Offline, "stopped")
	expect.StillFor(t, time.Second, func() fleet.AgentStatus { return w.now().Status }, "it has no stream of its own now")
	turn(codersdk.WorkspaceTransitionStart)
	w.await(fleet.Idle, "")
}

func TestRealDeafAgentIsStartedAnew(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	done := expect.Later(func() task.Outcome {
		out, _ := w.Prompt(context.Background(), w.prompt("say up", "deaf", "hang"))
		return out
	})
	expect.Await(t, "words of the agent", func() bool { return w.said() != "" })
	build := m.workspace(t).LatestBuild.BuildNumber
	w.Interrupt()
	out := <-done
	expect.True(t, out.Status == task.Cancelled, "outcome %+v", out)
	w.await(fleet.Starting, "")
	w.await(fleet.Idle, "")
	expect.Is(t, m.workspace(t).LatestBuild.BuildNumber, build+2, "build", "after", build)
}

func TestRealDeleteDuringABuild(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, map[string]any{"hang": true})
	r, rec := newRuntime(t, Options{}), m.record(t, settings{})
	w := openAgent(t, r, rec)
	w.await(fleet.Starting, "the workspace is starting")
	expect.No(t, w.Close())
	expect.No(t, r.Forget(context.Background(), rec))
	m.awaitGone(t)
	expect.Await(t, "nothing is kept", func() bool { left, err := r.memories(); return err == nil && len(left) == 0 })
}

// A member may not cancel a build of this template: the deletion waits until
// somebody has, and is done by the next runtime if this one ends before.
func TestRealDeleteThatIsNotAllowedYetIsDoneLater(t *testing.T) {
	d := realCoder(t)
	token, _ := d.order(t, map[string]any{"do": "member"})
	m := newMachineOf(t, d, token, map[string]any{"hang": true})
	admin := codersdk.New(m.client.URL, codersdk.WithSessionToken(d.token))
	opt := Options{State: t.TempDir()}
	r, rec := newRuntime(t, opt), m.record(t, settings{TokenFile: tokenFile(t, token)})
	w := openAgent(t, r, rec)
	w.await(fleet.Starting, "the workspace is starting")
	ws := m.workspace(t)
	expect.No(t, w.Close())
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	expect.No(t, r.Forget(ctx, rec))
	expect.No(t, r.Close())
	expect.Is(t, m.workspace(t).LatestBuild.Transition, codersdk.WorkspaceTransitionStart, "a member could delete during a build")
	next := newRuntime(t, opt)
	expect.Fails(t, expect.Fault(next.Open(context.Background(), rec, func(fleet.Health) {})), "an agent whose workspace goes can be opened")
	expect.No(t, next.Keep(context.Background(), nil))
	expect.No(t, admin.CancelWorkspaceBuild(context.Background(), ws.LatestBuild.ID, codersdk.CancelWorkspaceBuildParams{}))
	m.awaitGone(t)
}

func TestRealTokenIsReadAnewAndStaysOutOfReasons(t *testing.T) {
	d := realCoder(t)
	m := newMachine(t, d, nil)
	file := tokenFile(t, "abcdefghij-0123456789abcdefghijkl")
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{TokenFile: file}))
	h := w.await(fleet.Offline, "token")
	expect.True(t, !strings.Contains(h.Reason, "abcdefghij"), "the reason names the token: %q", h.Reason)
	expect.No(t, os.WriteFile(file, []byte(d.token), 0o600))
	w.await(fleet.Idle, "")
}

// This one ends the server that the others use, and brings it back.
func TestRealServerThatDiesMakesItsAgentsOfflineUntilItIsBack(t *testing.T) {
	d := ownCoder(t)
	m := newMachine(t, d, nil)
	w := openAgent(t, newRuntime(t, Options{}), m.record(t, settings{}))
	w.await(fleet.Idle, "")
	d.kill()
	w.await(fleet.Offline, "can't be reached")
	out, err := w.Prompt(shortly(t), w.prompt("say hello"))
	expect.True(t, err == nil && out.Status == task.Cancelled, "a prompt without a server: %+v %v", out, err)
	d.again(t)
	d.order(t, map[string]any{"do": "agent", "token": m.role.Token})
	w.await(fleet.Idle, "")
	out, err = w.Prompt(context.Background(), w.prompt("say back"))
	expect.True(t, err == nil && out.Status == task.Succeeded, "outcome %+v %v", out, err)
}

func shortly(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	t.Cleanup(stop)
	return ctx
}
