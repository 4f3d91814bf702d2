package coder

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coder/coder/v2/codersdk"
	"github.com/google/uuid"

	"swarmdeck/drivers/sse"
	"swarmdeck/engine/core"
)

// quietLimit ends a stream whose server has not even sent a ping, of which
// there is one every 15 s.
const quietLimit = 45 * time.Second

// run looks for the workspace, follows it and drives it to where it should be,
// until ctx ends. It looks at the state as it is and does the next step, so
// it does not matter which event or answer was lost.
func (a *agent) run(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		began := time.Now()
		id, err := a.find(ctx)
		if err == nil && id != uuid.Nil {
			err = a.follow(ctx, id)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.failed(err)
		}
		if time.Since(began) > lastBackoff {
			pause.reset()
		} else if err == nil {
			pause.failed = min(pause.failed, 3)
		}
		a.rest(ctx, pause.next(), id == uuid.Nil && err == nil)
	}
}

// rest waits before the next try: for a ring where there is nothing to follow.
func (a *agent) rest(ctx context.Context, d time.Duration, idle bool) {
	if idle {
		select {
		case <-a.bell:
		case <-ctx.Done():
		}
		return
	}
	select {
	case <-time.After(d):
	case <-a.nudge: // the server is there
	case <-ctx.Done():
	}
}

// find is the id of the agent's workspace, which is made if there never was
// one; uuid.Nil when it is not to be there.
func (a *agent) find(ctx context.Context) (uuid.UUID, error) {
	a.mu.Lock()
	m, lost, stopped, anew := a.mem, a.lost, a.stopped, a.anew
	a.mu.Unlock()
	switch {
	case lost && !anew, stopped && m.Workspace == "" && m.Asked.IsZero():
		return uuid.Nil, nil
	case lost:
		m.Workspace, m.Asked = "", time.Time{}
	}
	if id := m.id(); id != uuid.Nil {
		a.site.claim(id, a)
		return id, nil
	}
	ws, err := a.site.named(ctx, a.rec.Name)
	switch {
	case gone(err):
		return a.create(ctx, m)
	case err != nil:
		return uuid.Nil, err
	case m.Asked.IsZero() && !a.set.Adopt:
		return uuid.Nil, core.Errorf(core.Conflict, "name: there is a workspace %s already (it is %s); options.adopt takes it over",
			a.rec.Name, core.OneLine(string(ws.LatestBuild.Status), 32)).With("field", "name").With("value", a.rec.Name)
	}
	return a.own(m, ws) // made by a request whose answer was lost, or adopted
}

// create makes the workspace. That it was asked for is on disk before.
func (a *agent) create(ctx context.Context, m memory) (uuid.UUID, error) {
	p, preset, err := a.site.find(ctx, a.rec.Project, a.set.Template, a.rec.Role)
	if err != nil {
		return uuid.Nil, err
	}
	m.Asked = time.Now().UTC()
	if err := a.write(m); err != nil {
		return uuid.Nil, err
	}
	a.change(func() { a.mem, a.lost = m, false })
	b := backendOf(a.site, a.set, nil)
	ws, err := b.create(ctx, order{name: a.rec.Name, project: p, preset: preset, settings: a.set})
	if err == nil {
		return a.own(m, ws)
	}
	if e := core.AsError(err); e.Code == core.InvalidInput || e.Code == core.Conflict {
		// Refused: nothing was made, and what has the name now is another's.
		m.Asked = time.Time{}
		a.change(func() { a.mem = m })
		err = errors.Join(err, a.write(m))
	}
	return uuid.Nil, err
}

// own keeps which workspace is the agent's.
func (a *agent) own(m memory, ws *codersdk.Workspace) (uuid.UUID, error) {
	m.Workspace = ws.ID.String()
	if m.Asked.IsZero() {
		m.Asked = time.Now().UTC()
	}
	if err := a.write(m); err != nil {
		return uuid.Nil, err
	}
	a.change(func() {
		m.Reported = a.mem.Reported
		a.mem, a.lost, a.anew, a.ws = m, false, false, nil
	})
	a.site.claim(ws.ID, a)
	a.saw(ws)
	return ws.ID, nil
}

// follow reads the workspace's stream to its end and acts on each event.
func (a *agent) follow(ctx context.Context, id uuid.UUID) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := a.read(ctx, id); err != nil {
		return a.missed(err)
	}
	a.history(ctx)
	news, ended := make(chan *codersdk.Workspace, 1), make(chan error, 1)
	watching, heard := false, false
	safety := time.NewTicker(safetyEvery)
	defer safety.Stop()
	for {
		if err := a.drive(ctx); err != nil {
			return err
		}
		if !watching && !(a.rests() && a.site.streams()) {
			watching = true
			a.tasks.Go(func() { ended <- a.watch(ctx, id, news) })
		}
		select {
		case ws := <-news:
			heard = true
			a.saw(ws)
			if ws.LatestBuild.Status == codersdk.WorkspaceStatusDeleted { // the stream would stay open
				return nil
			}
		case <-a.bell:
		case <-a.nudge:
			if heard {
				continue // the workspace's own stream says it
			}
			if err := a.read(ctx, id); err != nil {
				return err
			}
		case <-safety.C:
			if err := a.read(ctx, id); err != nil {
				return err
			}
		case err := <-ended:
			if gone(err) { // the stream is; perhaps the workspace too
				if now := a.read(ctx, id); now != nil {
					return a.missed(now)
				}
			}
			return err
		}
	}
}

// missed takes in that the workspace can't be read: deleted ones are no error.
func (a *agent) missed(err error) error {
	if !gone(err) {
		return err
	}
	a.change(func() { a.lost, a.ws = true, nil })
	return nil
}

// rests says that the workspace does nothing, so that it needs no stream of its
// own: the deployment's tells when it begins to.
func (a *agent) rests() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ws == nil || busyBuild(a.ws) || a.anew || a.stopped {
		return false
	}
	return a.ws.LatestBuild.Status != codersdk.WorkspaceStatusRunning
}

// history shows what the agent reported while nobody listened, as far as the
// server still knows.
func (a *agent) history(ctx context.Context) {
	a.mu.Lock()
	ws, done := a.ws, a.caughtUp
	a.caughtUp = true
	a.mu.Unlock()
	if done || ws == nil {
		return
	}
	list, err := backendOf(a.site, a.set, ws).history(ctx, ws)
	if err != nil {
		return
	}
	a.mu.Lock()
	fresh, t := a.unseen(list), a.turn
	a.mu.Unlock()
	a.log(fresh, t)
}

// read takes the workspace as it is now.
func (a *agent) read(ctx context.Context, id uuid.UUID) error {
	ws, err := a.site.workspace(ctx, id)
	if err == nil {
		a.saw(ws)
	}
	return err
}

// watch hands on each picture of the workspace that the server sends; of
// several only the newest counts. The stream's end is no failure: whether
// the server is away, the next read tells.
func (a *agent) watch(ctx context.Context, id uuid.UUID, news chan *codersdk.Workspace) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := time.AfterFunc(a.within(openLimit), stop)
	defer quiet.Stop()
	resp, err := a.site.client.Request(ctx, http.MethodGet, apiPath+"workspaces/"+id.String()+"/watch", nil)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it did not open in time
		}
		return explain("follow the workspace", err)
	}
	if resp.StatusCode != http.StatusOK {
		return explain("follow the workspace", codersdk.ReadBodyAsError(resp))
	}
	defer resp.Body.Close()
	quiet.Reset(quietLimit)
	var told error
	_ = sse.Each(resp.Body, maxEvent, func(kind string, data []byte) error {
		quiet.Reset(quietLimit)
		switch codersdk.ServerSentEventType(kind) {
		case codersdk.ServerSentEventTypeData:
		case codersdk.ServerSentEventTypeError:
			return io.EOF
		default:
			return nil
		}
		ws := new(codersdk.Workspace)
		if err := json.Unmarshal(data, ws); err != nil {
			told = explain("follow the workspace", err)
			return told
		}
		if ws.ID != id {
			return nil
		}
		select {
		case <-news: // overtaken
		default:
		}
		news <- ws // only this goroutine sends, so there is room
		return nil
	})
	return told
}

// drive does the next step from how the workspace is to how it should be.
func (a *agent) drive(ctx context.Context) error {
	a.mu.Lock()
	ws, stopped, anew, cancelled := a.ws, a.stopped, a.anew, a.cancels
	a.mu.Unlock()
	if ws == nil || !stopped && !anew {
		return nil
	}
	b := &ws.LatestBuild
	if busyBuild(ws) {
		if b.Transition == codersdk.WorkspaceTransitionStart && cancelled != b.ID {
			a.change(func() { a.cancels = b.ID })
			_ = a.site.cancelBuild(ctx, b.ID) // not allowed in some templates: it ends by itself
		}
		return nil
	}
	to := codersdk.WorkspaceTransitionStart
	switch {
	case b.Transition == codersdk.WorkspaceTransitionStart && b.Status == codersdk.WorkspaceStatusRunning:
		to = codersdk.WorkspaceTransitionStop
	case stopped:
		return nil
	}
	err := a.site.build(ctx, ws.ID, to, false)
	if errors.Is(err, core.Kind(core.Conflict)) {
		return nil // another build has begun: its event comes
	}
	if err != nil {
		return err
	}
	if to == codersdk.WorkspaceTransitionStart {
		a.change(func() {
			a.anew = false
			a.restarts++
		})
	}
	return a.read(ctx, ws.ID)
}

// listen asks the app for its status when the workspace has come up, until it
// answers, and while it works on what was not given to it here. An app that
// answers is not asked again: each call counts as use of the workspace, and one
// that is not used may stop by itself as its template says. What changes then
// comes by overhear.
func (a *agent) listen(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil {
		a.mu.Lock()
		ws := a.ws
		ask := a.up() && (a.api == "" || a.api == "running" && a.turn == nil)
		a.mu.Unlock()
		if !ask {
			pause.reset()
			select {
			case <-a.ring:
			case <-ctx.Done():
			}
			continue
		}
		status, err := backendOf(a.site, a.set, ws).status(ctx, ws)
		if ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		same := a.ws != nil && a.ws.LatestBuild.ID == ws.LatestBuild.ID
		a.mu.Unlock()
		if same {
			a.answers(status, err)
		}
		if err != nil || status == "running" {
			core.Within(ctx.Done(), pause.next())
		}
	}
}
