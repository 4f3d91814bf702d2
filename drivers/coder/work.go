package coder

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/coder/v2/codersdk"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
)

const (
	// stillLimit is how long it may take to find out whether an agent is there.
	stillLimit = 8 * time.Second
	// openLimit is how long the opening of a stream may take; that of the first
	// one to an agent takes about 5 s.
	openLimit = 12 * time.Second
	// silence is how long a stream that is open may say nothing until the agent
	// is asked: what a network has lost looks the same.
	silence = 30 * time.Second
	// pressAgain is how long the key that stops an agent has to show: agentapi takes
	// an agent to be at rest once its screen stood still for 2 s, and each press
	// may change it.
	pressAgain = 3 * time.Second
)

// feed is the agent's stream during a turn.
type feed struct {
	news chan update
	open chan struct{} // one value for each opening
	down chan error    // one value for each end
}

// listen keeps one stream open until it ends; the loop says when to try again.
func (t *turn) listen(ctx context.Context, f *feed) {
	err := t.a.stream(ctx, t.b, t.ws, f.news, func() {
		select {
		case f.open <- struct{}{}:
		case <-ctx.Done():
		}
	})
	select {
	case f.down <- err:
	case <-ctx.Done():
	}
}

// stream hands on what an agent says, after all that it has said, until the stream or ctx
// ends; one that does not open in time ends too. opened is called once it is open.
func (a *agent) stream(ctx context.Context, b backend, ws *codersdk.Workspace, news chan<- update, opened func()) error {
	ctx, drop := context.WithCancel(ctx)
	defer drop()
	late := time.AfterFunc(a.within(openLimit), drop)
	defer late.Stop()
	return b.follow(ctx, ws, func() {
		late.Stop()
		opened()
	}, func(u update) {
		select {
		case news <- u:
		case <-ctx.Done():
		}
	})
}

// within is a limit, or the patience with a deployment if that is shorter.
func (a *agent) within(limit time.Duration) time.Duration { return min(limit, a.r.opt.Patience) }

// work gives the agent the task and follows it to its end. A turn that is
// ended from outside comes back without an error.
func (t *turn) work() error {
	ctx, drop := context.WithCancel(t.a.life)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer drop()
	f := &feed{news: make(chan update, 64), open: make(chan struct{}, 1), down: make(chan error, 1)}
	helpers.Go(func() { t.listen(ctx, f) })
	tick := time.NewTicker(keeper.BeatEvery)
	defer tick.Stop()

	var (
		sent     = make(chan error, 1)
		sending  = t.takenUp
		worked   = t.takenUp // it was seen at work since
		since    time.Time   // when the agent had taken the task, or was asked about it; zero before
		heard    time.Time   // when the stream last said something, or the agent was asked
		away     time.Time   // since when the stream is down; zero while it is not
		again    <-chan time.Time
		pause    backoff
		stopping <-chan struct{}
		stop     = t.Stop
	)
	if t.takenUp {
		since, heard = time.Now(), time.Now()
	}
	for {
		select {
		case <-f.open:
			away = time.Time{}
			pause.reset()
			if !sending {
				if err := t.give(); err != nil {
					return err
				}
				sending = true
				helpers.Go(func() { sent <- t.b.send(ctx, t.ws, t.Prompt.Message) })
			}
		case u := <-f.news:
			heard = time.Now()
			if u.status == "" {
				t.seen = max(t.seen, u.ID)
				t.take(u.message)
				continue
			}
			t.a.noteStatus(u.status)
			switch {
			case u.status == "running" && sending:
				worked = true
			case u.status == "stable" && worked && (!since.IsZero() || stopping != nil) && t.idle(ctx):
				return t.finish()
			}
		case err := <-sent:
			if err != nil {
				if e := core.AsError(err); e.Details["error"] == "AgentBusyError" || stopping == nil {
					return err
				}
				return nil
			}
			since, heard = time.Now(), time.Now()
			t.seen = max(t.seen, t.base+1) // the task is a message too
			if t.a.appStatus() == "stable" && worked && t.idle(ctx) {
				return t.finish()
			}
		case err := <-f.down:
			if away.IsZero() {
				away = time.Now()
			}
			if err := t.still(ctx, err); err != nil {
				t.showAll()
				return err
			}
			if time.Since(away) > t.a.r.opt.Patience {
				t.showAll()
				return err
			}
			again = time.After(pause.next())
		case <-again:
			again = nil
			helpers.Go(func() { t.listen(ctx, f) })
		case <-tick.C:
			if t.last > t.base && time.Since(t.at) > talkPause {
				t.show(t.last)
			}
			t.showReports()
			rests := (!worked || t.a.appStatus() == "stable") && time.Since(since) > beginLimit
			if !since.IsZero() && away.IsZero() && (rests || time.Since(heard) > t.a.within(silence)) {
				since, heard = time.Now(), time.Now() // ask again in a while
				if err := t.still(ctx, nil); err != nil {
					t.showAll()
					return err
				}
				if t.idle(ctx) {
					return t.finish()
				}
			}
		case <-stop:
			stop = nil
			if t.isLeft() {
				t.showAll()
				return nil
			}
			if !sending { // nothing of ours runs there
				return nil
			}
			if t.Ending() != keeper.ByCancel {
				t.goodbye()
				t.showAll()
				return nil
			}
			done := make(chan struct{})
			stopping = done
			helpers.Go(func() { t.interrupt(ctx, done) })
		case <-stopping: // the grace is over
			t.showAll()
			t.a.change(func() { t.a.anew = true })
			return nil
		case <-t.a.life.Done():
			return errors.New("the agent was closed")
		}
	}
}

// still says whether the work may go on after the end of a stream: not when
// the agent's app is away or has begun anew, and with it the agent.
func (t *turn) still(ctx context.Context, err error) error {
	if err != nil && appAway(err) {
		t.a.answers("", err)
		return core.Errorf(core.Unavailable, "the agent went away during the task: %s", core.AsError(err).Message)
	}
	ctx, stop := context.WithTimeout(ctx, stillLimit)
	defer stop()
	list, err := t.b.log(ctx, t.ws)
	if err != nil {
		if appAway(err) {
			t.a.answers("", err)
			return core.Errorf(core.Unavailable, "the agent went away during the task: %s", core.AsError(err).Message)
		}
		return nil // the deployment is: it may come back
	}
	return t.anew(list)
}

// anew tells a conversation that has lost what was in it: with an agent that
// crashed, and was started again. It shows as away until its app has answered.
func (t *turn) anew(list []message) error {
	newest := -1
	for _, m := range list {
		newest = max(newest, m.ID)
	}
	if newest >= t.seen {
		return nil
	}
	err := core.Errorf(core.Unavailable, "the agent has begun anew during the task")
	t.a.answers("", err)
	return err
}

// appAway tells an app that does not answer from a deployment that does not.
func appAway(err error) bool {
	status, ok := core.AsError(err).Details["status"].(int)
	return ok && (status == http.StatusBadGateway || status == http.StatusBadRequest || status == http.StatusNotFound)
}

// idle asks whether the agent has really ended its work: a stream begins with
// what was, and that may be how an earlier task has ended.
func (t *turn) idle(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, stillLimit)
	defer stop()
	status, err := t.b.status(ctx, t.ws)
	return err == nil && status == "stable"
}

// finish reads once more what was said and reported: the last words may come
// after the status.
func (t *turn) finish() error {
	ctx, stop := context.WithTimeout(t.a.life, callLimit)
	defer stop()
	var lost error
	if list, err := t.b.log(ctx, t.ws); err == nil {
		lost = t.anew(list)
		for _, m := range list {
			t.take(m)
		}
	}
	_ = t.a.read(ctx, t.ws.ID) // its reports; what has been seen so far counts otherwise
	t.showAll()
	t.showReports()
	return lost
}

// interrupt presses the key until the turn is over, and then gives up: done
// is closed when the grace is.
func (t *turn) interrupt(ctx context.Context, done chan struct{}) {
	end := time.NewTimer(t.a.r.opt.Grace)
	defer end.Stop()
	press := func() {
		ctx, stop := context.WithTimeout(ctx, 2*time.Second)
		defer stop()
		_ = t.b.interrupt(ctx, t.ws) // it is pressed again
	}
	press()
	wait := pressAgain
	again := time.NewTimer(wait)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			press()
			wait *= 2
			again.Reset(wait)
		case <-end.C:
			close(done)
			return
		case <-ctx.Done():
			return
		}
	}
}

// goodbye interrupts an agent that nobody listens to any more.
func (t *turn) goodbye() {
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.a.life), 2*time.Second)
	defer stop()
	_ = t.b.interrupt(ctx, t.ws)
}
