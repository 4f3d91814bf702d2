package coder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const (
	// maxOverheard is how many bytes an agent may say to somebody else at once.
	maxOverheard = 4 << 20
	// settle is how long a status may be the newest of several that come at once.
	settle = 50 * time.Millisecond
)

var _ fleet.Overheard = (*agent)(nil)

func (a *agent) Overhear(hear func(context.Context, fleet.Event) error) {
	a.mu.Lock()
	a.hear = hear
	earlier := a.backlog.Take()
	a.mu.Unlock()
	for _, e := range earlier {
		a.say(e)
	}
}

// say has something in the log that is of no task: at once where somebody hears it,
// else with the next task.
func (a *agent) say(e fleet.Event) {
	a.mu.Lock()
	hear := a.hear
	a.mu.Unlock()
	if hear != nil && hear(a.life, e) == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.backlog.Add(e)
}

// overhear follows the conversation while nothing of ours is in it: somebody may talk
// to the agent on Coder's own page. The stream is silent while nobody does, and only
// what is sent counts as use of a workspace that stops by itself.
func (a *agent) overhear(ctx context.Context) {
	var pause backoff
	for a.await(ctx, a.free) {
		began := time.Now()
		err := a.listenIn(ctx)
		if err != nil && appAway(err) && ctx.Err() == nil {
			a.answers("", err) // listen asks until it answers
		}
		if time.Since(began) > lastBackoff {
			pause.reset()
		}
		if core.Within(ctx.Done(), pause.next()) {
			return
		}
	}
}

// free says that the agent is there and does nothing of ours; mu is held.
func (a *agent) free() bool { return !a.closed && a.up() && a.api != "" && a.turn == nil }

// listenIn follows one stream until it ends, or the agent is no longer free.
func (a *agent) listenIn(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	a.mu.Lock()
	ws, build := a.ws, a.build
	a.mu.Unlock()
	if ws == nil {
		return nil
	}
	helpers.Go(func() {
		a.await(ctx, func() bool { return !a.free() || a.build != build })
		stop()
	})
	b := backendOf(a.site, a.set, ws)
	list, err := b.log(ctx, ws)
	if err != nil || ctx.Err() != nil {
		return err
	}
	e := a.earFor(build, list)
	news, ended := make(chan update, 64), make(chan error, 1)
	helpers.Go(func() { ended <- a.stream(ctx, b, ws, news, func() {}) })
	defer e.pause()
	var still, ask <-chan time.Time
	for {
		select {
		case u := <-news:
			if u.status != "" {
				ask = time.After(settle)
			} else if e.take(u.message) {
				still = time.After(talkPause)
			}
		case <-still:
			still = nil
			e.pause()
		case <-ask: // a stream begins with what was
			ask = nil
			status, err := b.status(ctx, ws)
			if err != nil || ctx.Err() != nil {
				return err
			}
			if status == "stable" {
				e.rest() // before a task of ours may begin
			}
			a.heardStatus(build, status)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// heardStatus takes in how the app is, while the agent is free.
func (a *agent) heardStatus(build uuid.UUID, status string) {
	a.change(func() {
		if a.free() && a.build == build {
			a.api = status
		}
	})
}

// ear takes in what somebody else and the agent say to each other.
type ear struct {
	a     *agent
	build uuid.UUID
	known int   // messages up to this one were taken in before
	own   int   // the newest message that an engine before this one sent; -1 for none
	user  int   // the newest of somebody else's
	talk  *talk // what the agent says to them; nil while it says nothing
}

// earFor goes on where the conversation was left. One that is not known yet is followed
// from its beginning, unless others had it before us.
func (a *agent) earFor(build uuid.UUID, list []message) *ear {
	newest := -1
	for _, m := range list {
		newest = max(newest, m.ID)
	}
	a.mu.Lock()
	h, given := a.mem.Heard, a.mem.Given
	anew := h == nil || h.Build != build.String() || newest < h.ID
	switch {
	case h == nil && (a.set.Adopt || a.rec.LastTaskID != ""):
		h = &heard{Build: build.String(), ID: newest}
	case anew:
		h = &heard{Build: build.String(), ID: -1}
	}
	a.mem.Heard = h
	a.mu.Unlock()
	if anew {
		_ = a.keep() // else the next engine begins at what is newest then
	}
	e := &ear{a: a, build: build, known: h.ID, own: -1, user: h.ID}
	if h.Theirs {
		e.talk = newTalk(h.ID, maxOverheard, a.say)
	}
	if given == nil || given.Done {
		return e
	}
	for _, m := range list { // the first after its base is what was given
		if m.Role == "user" && m.ID > given.Base {
			e.own = m.ID
			break
		}
	}
	return e
}

// take takes a message in and says whether there is something to show once it stands
// still.
func (e *ear) take(m message) bool {
	switch {
	case m.ID <= e.known:
	case m.Role == "user" && (m.ID == e.own || e.greets(m)):
		e.rest()
		e.talk = nil
		e.user = max(e.user, m.ID)
	case m.Role == "user" && m.ID > e.user:
		e.rest()
		e.user, e.talk = m.ID, newTalk(m.ID, maxOverheard, e.a.say)
		e.a.say(fleet.Event{Type: "prompt", Text: tidy(m.Content), Turn: e.turn(m.ID)})
		e.keep(heard{ID: m.ID, Theirs: true})
	case e.talk != nil:
		e.talk.take(m)
		return true
	}
	return false
}

// greets says that a message is what the template gives a new agent, as we asked.
func (e *ear) greets(m message) bool {
	return m.ID <= 2 && tidy(m.Content) == tidy(e.a.set.greeting())
}

// pause shows what the agent has said so far.
func (e *ear) pause() {
	if e.talk != nil {
		e.talk.showAll()
	}
}

// rest is the end of an answer.
func (e *ear) rest() {
	e.pause()
	if e.talk == nil || e.talk.last == e.talk.base {
		return
	}
	end := fleet.Event{Type: "result", Turn: e.turn(e.talk.base)}
	for _, id := range slices.Sorted(maps.Keys(e.talk.texts)) {
		if text := e.talk.texts[id]; text != "" {
			end.Said = append(end.Said, text)
		}
	}
	e.a.say(end)
	e.keep(heard{ID: e.talk.last})
}

// turn names the turn that a message of somebody else's begins.
func (e *ear) turn(id int) string { return fmt.Sprintf("%s/%d", e.build, id) }

// keep notes how far the conversation was followed, once.
func (e *ear) keep(h heard) {
	h.Build = e.build.String()
	a := e.a
	same := false
	a.change(func() {
		if same = a.turn != nil || a.mem.Heard != nil && *a.mem.Heard == h; !same {
			a.mem.Heard = &h
		}
	})
	if !same {
		_ = a.keep() // else it is shown again by the next engine
	}
}
