package coder

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/loop"
)

// agent is one open agent. One goroutine, run, drives its workspace to where
// it should be; another, listen, finds out whether its app answers.
// Nothing that can block is called with mu held.
type agent struct {
	r      *Runtime
	rec    fleet.Agent
	set    settings
	site   *site
	notify func(fleet.Health)
	leave  func()

	life  context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup
	bell  chan struct{} // run looks again
	nudge chan struct{} // the deployment says that something has changed
	ring  chan struct{} // listen looks again

	writing  sync.Mutex // of mem to disk; before mu
	mu       sync.Mutex
	mem      memory
	hear     func(context.Context, fleet.Event) error // takes what is said of no task; nil: nobody does
	ws       *codersdk.Workspace                      // newest seen, never modified; nil: none yet
	fault    error                                    // why the deployment can't be used
	lost     bool                                     // its workspace was deleted by somebody else
	stopped  bool
	anew     bool // its workspace is to be stopped and started
	cancels  uuid.UUID
	api      string // of the app: stable, running, "" while not known
	apiFault string // why the app does not answer
	build    uuid.UUID
	why      buildFault // of the newest build that failed
	turn     *turn
	paused   chan struct{} // closed by Resume; nil while not paused
	moved    chan struct{} // closed and replaced when anything above changes
	restarts int
	told     fleet.Health
	seen     map[uuid.UUID]bool // reports that were shown in this opening
	since    time.Time          // until then they were shown by an earlier one
	caughtUp bool               // the server's history was looked through
	backlog  keeper.Backlog
	closed   bool
}

var _ fleet.Handle = (*agent)(nil)

func newAgent(r *Runtime, rec fleet.Agent, set settings, m memory, s *site, notify func(fleet.Health)) *agent {
	return &agent{
		r: r, rec: rec, set: set, site: s, notify: notify, mem: m, since: m.Reported, stopped: rec.Stopped, restarts: rec.Restarts,
		bell: make(chan struct{}, 1), nudge: make(chan struct{}, 1), ring: make(chan struct{}, 1), moved: make(chan struct{}), seen: map[uuid.UUID]bool{},
	}
}

func (a *agent) start(ctx context.Context) {
	a.life, a.end = context.WithCancel(ctx)
	a.site.join(a)
	a.mu.Lock()
	a.report()
	a.mu.Unlock()
	a.tasks.Go(func() { a.run(a.life) })
	a.tasks.Go(func() { a.listen(a.life) })
	if !a.set.LeaveAlone {
		a.tasks.Go(func() { a.overhear(a.life) })
	}
}

// stir is what the deployment's own stream calls.
func (a *agent) stir() { loop.Ring(a.nudge) }

// change does something to the state, reports what follows and wakes all.
func (a *agent) change(do func()) {
	a.mu.Lock()
	do()
	a.report()
	close(a.moved)
	a.moved = make(chan struct{})
	a.mu.Unlock()
	loop.Ring(a.bell)
	loop.Ring(a.ring)
}

// await returns when ok holds, false when ctx ended first. ok is called with
// mu held.
func (a *agent) await(ctx context.Context, ok func() bool) bool {
	for {
		a.mu.Lock()
		yes, moved := ok(), a.moved
		a.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// report tells the agent's health where it has changed; mu is held, so reports
// keep their order.
func (a *agent) report() {
	h := fleet.Health{Restarts: a.restarts}
	h.Status, h.Reason = a.health()
	if a.mem.Workspace != "" {
		h.WorkspaceID = a.mem.Workspace
	}
	if h == a.told || a.closed {
		return
	}
	a.told = h
	a.notify(h)
}

// health is how the agent is; mu is held.
func (a *agent) health() (fleet.AgentStatus, string) {
	switch {
	case a.stopped:
		return fleet.Offline, "stopped"
	case a.fault != nil:
		e := core.AsError(a.fault)
		if e.Code == core.Unavailable {
			return fleet.Offline, core.OneLine(e.Message, 500)
		}
		return fleet.Failed, core.OneLine(e.Message, 500)
	case a.lost:
		return fleet.Failed, "its workspace was deleted in Coder; a restart makes a new one"
	case a.anew:
		return fleet.Starting, "the workspace is started anew"
	case a.ws == nil:
		return fleet.Starting, "the workspace is being created"
	}
	status, reason := statusOf(a.facts())
	switch {
	case status != fleet.Idle && status != fleet.Busy:
		return status, reason
	case a.apiFault != "":
		return fleet.Offline, a.apiFault
	case a.api == "":
		return fleet.Starting, "waiting for the agent's app"
	case a.turn != nil:
		return fleet.Idle, ""
	case a.api == "running" && status == fleet.Idle && a.mem.Given != nil && !a.mem.Given.Done:
		return fleet.Busy, "still works on " + core.OneLine(a.mem.Given.TaskID, 64) + ", which an engine before this one gave it"
	case a.api == "running" && status == fleet.Idle:
		return fleet.Busy, "works on something that was not given to it here"
	}
	return status, reason
}

// up reports whether the workspace runs with its agent ready; mu is held.
func (a *agent) up() bool {
	if a.ws == nil || a.fault != nil || a.lost || a.stopped || a.anew {
		return false
	}
	status, _ := statusOf(a.facts())
	return status == fleet.Idle || status == fleet.Busy
}

// saw takes a newer picture of the workspace in. Reports that came with it go
// to the log of the task under way, or of the next one.
func (a *agent) saw(ws *codersdk.Workspace) {
	a.heard(ws)
	var fresh []codersdk.WorkspaceAppStatus
	var t *turn
	a.change(func() {
		if a.ws != nil && ws.LatestBuild.BuildNumber < a.ws.LatestBuild.BuildNumber {
			return // an answer that was overtaken
		}
		if a.build != ws.LatestBuild.ID || ws.LatestBuild.Status != codersdk.WorkspaceStatusRunning {
			a.api, a.apiFault = "", "" // another process answers now, or none
		}
		a.ws, a.fault, a.build = ws, nil, ws.LatestBuild.ID
		fresh, t = a.unseen(reports(ws)), a.turn
	})
	a.log(fresh, t)
}

// unseen picks the reports that were not shown yet, in this or an earlier
// opening; mu is held.
func (a *agent) unseen(list []codersdk.WorkspaceAppStatus) (fresh []codersdk.WorkspaceAppStatus) {
	for _, s := range list {
		if a.seen[s.ID] || !s.CreatedAt.After(a.since) {
			continue
		}
		a.seen[s.ID] = true
		fresh = append(fresh, s)
		if s.CreatedAt.After(a.mem.Reported) {
			a.mem.Reported = s.CreatedAt
		}
	}
	return fresh
}

// log shows reports, and keeps on disk that they were shown.
func (a *agent) log(fresh []codersdk.WorkspaceAppStatus, t *turn) {
	if len(fresh) == 0 {
		return
	}
	for _, s := range fresh {
		if t == nil || !t.reported(s) {
			level, text := showReport(s)
			a.say(fleet.Event{Type: "log", Level: level, Text: text})
		}
	}
	a.mu.Lock()
	known := a.mem.Workspace != ""
	a.mu.Unlock()
	if known {
		_ = a.keep() // else they are shown again by the next opening
	}
}

// failed takes in that a call to the deployment failed.
func (a *agent) failed(err error) {
	a.change(func() { a.fault = err })
}

// answers takes in what the app said, or why it does not.
func (a *agent) answers(status string, err error) {
	a.change(func() {
		if !a.up() {
			return
		}
		if err == nil {
			if a.apiFault != "" {
				a.restarts++
			}
			a.api, a.apiFault = status, ""
			return
		}
		a.api = ""
		if a.apiFault = core.OneLine(core.AsError(err).Message, 400); a.apiFault == "" {
			a.apiFault = "the agent's app does not answer"
		}
	})
}

// Stop implements fleet.Handle: the workspace is stopped, and with it whatever
// runs there. A deployment that does not answer is told as soon as it does.
func (a *agent) Stop(ctx context.Context) error {
	a.change(func() { a.stopped, a.anew = true, false })
	a.endTurn(keeper.ByStop)
	return nil
}

// Restart implements fleet.Handle: the workspace is stopped if it runs, and
// started; one that was deleted is made again. It does not wait for that.
func (a *agent) Restart(ctx context.Context) error {
	a.endTurn(keeper.ByRestart)
	a.change(func() {
		a.stopped, a.anew, a.fault = false, true, nil
		a.unpause()
	})
	return nil
}

// Pause implements fleet.Handle. Coder can't freeze an agent that works, so
// one that does is not paused: its task can be cancelled, or it can be stopped.
func (a *agent) Pause(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn != nil {
		return core.Errorf(core.Unavailable, "agent %s works, and Coder can't freeze a workspace: it pauses when its task ends, or cancel that", a.rec.Name)
	}
	if a.paused == nil {
		a.paused = make(chan struct{})
	}
	return nil
}

func (a *agent) Resume(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unpause()
	return nil
}

// unpause lets the next prompt go; mu is held.
func (a *agent) unpause() {
	if a.paused != nil {
		close(a.paused)
		a.paused = nil
	}
}

// Close implements fleet.Handle. The workspace stays as it is: it belongs to
// the agent, not to this opening of it, and work under way goes on.
func (a *agent) Close() error {
	a.mu.Lock()
	first := !a.closed
	a.closed = true
	a.mu.Unlock()
	if !first {
		a.tasks.Wait()
		return nil
	}
	a.Leave()
	a.end()
	a.tasks.Wait()
	a.site.leave(a)
	a.leave()
	return nil
}

// now is the turn under way, nil for none.
func (a *agent) now() *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn
}

// endTurn ends a prompt and waits until it has let go.
func (a *agent) endTurn(why keeper.Ending) {
	if t := a.now(); t != nil {
		t.End(why, why.String())
		<-t.Gone
	}
}

func (a *agent) Leave() {
	if t := a.now(); t != nil {
		t.leave()
		<-t.Gone
	}
}

func (a *agent) Interrupt() {
	if t := a.now(); t != nil {
		t.End(keeper.ByCancel, keeper.ByCancel.String())
	}
}

func (a *agent) describe() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, reason := a.health()
	if reason != "" {
		return fmt.Sprintf("it is %s: %s", status, reason)
	}
	return "it is " + string(status)
}

// noteStatus takes in a status from the stream of a turn.
func (a *agent) noteStatus(status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.api != "" {
		a.api = status
	}
}

// appStatus is the newest status of the app.
func (a *agent) appStatus() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.api
}
