package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/expect"
)

// rig is a world with sessions, and what runs in them.
type rig struct {
	*enginetest.World
	all *session.Sessions

	canceled []string // "SESSION: why"
	broken   error    // why tasks can't be cancelled now
}

func newRig(t *testing.T) *rig {
	r := &rig{}
	r.World = enginetest.New(t, enginetest.Options{Build: func(w *enginetest.World) {
		j := expect.Of(judge.New(judge.Options{Ledger: w.Ledger, Tenants: w.Store.Tenants}))(w.T)
		r.all = session.New(session.Options{Ledger: w.Ledger, Judge: j, Health: health.New(health.Options{}), Work: r})
		w.No(r.all.Read(t.Context(), enginetest.Acme))
	}})
	return r
}

// The rig implements session.Work.

func (r *rig) Unpaused(_, id string) []string {
	if r.all.State(enginetest.Acme, id) == session.Paused {
		return []string{"task 1"}
	}
	return nil
}

func (r *rig) CancelSession(_ context.Context, _ core.Caller, id, why string) error {
	if r.broken == nil {
		r.canceled = append(r.canceled, id+": "+why)
	}
	return r.broken
}

func (r *rig) CutOffSession(string, string, string)               {}
func (r *rig) SessionChanged(_ string, _ string, _ session.State) {}

func (r *rig) create(name string) session.Session {
	r.T.Helper()
	return expect.Of(r.all.Create(r.T.Context(), enginetest.Alice(), name))(r.T)
}

func TestASessionGoesThroughItsStates(t *testing.T) {
	ctx, by := t.Context(), enginetest.Alice()
	r := newRig(t)
	moves := map[string]func(id string) (session.Session, error){
		"start":  func(id string) (session.Session, error) { return r.all.Start(ctx, by, id) },
		"resume": func(id string) (session.Session, error) { return r.all.Resume(ctx, by, id) },
		"pause":  func(id string) (session.Session, error) { return r.all.Pause(ctx, by, id, "") },
		"stop":   func(id string) (session.Session, error) { return r.all.Stop(ctx, by, id, "") },
	}
	for _, c := range []struct {
		way     []string
		allowed []string
	}{
		{nil, []string{"start", "stop"}},
		{[]string{"start"}, []string{"pause", "stop"}},
		{[]string{"start", "pause"}, []string{"resume", "stop"}},
		{[]string{"start", "pause", "resume"}, []string{"pause", "stop"}},
		{[]string{"start", "stop"}, nil},
	} {
		for verb, move := range moves {
			s := r.create("")
			for _, before := range c.way {
				expect.Of(moves[before](s.SessionID))(r.T)
			}
			_, err := move(s.SessionID)
			if want := slices.Contains(c.allowed, verb); want != (err == nil) || err != nil && core.AsError(err).Code != core.Conflict {
				t.Errorf("%s after %v: %v; allowed is %v", verb, c.way, err, c.allowed)
			}
		}
	}
	r.Proven(enginetest.Acme)
}

func TestANameIsOfOneLiveSession(t *testing.T) {
	r := newRig(t)
	first := r.create("night")
	if _, err := r.all.Create(t.Context(), enginetest.Alice(), "night"); core.AsError(err).Code != core.Conflict {
		t.Errorf("a second session of that name: %v", err)
	}
	id, ok := r.all.Named(enginetest.Acme, "night")
	expect.True(t, ok && id == first.SessionID, "the name stands for %q, %v", id, ok)
	_, err := r.all.Stop(t.Context(), enginetest.Alice(), "night", "")
	r.No(err)
	second := r.create("night")
	id, _ = r.all.Named(enginetest.Acme, "night")
	expect.True(t, id == second.SessionID, "once the first was stopped, the name stands for %q, want %s", id, second.SessionID)
	for _, name := range []string{"-night", "a b", first.SessionID, "\x1b[2J"} {
		_, err = r.all.Create(t.Context(), enginetest.Alice(), name)
		expect.Is(t, core.AsError(err).Code, core.InvalidInput, "name", name)
	}
}

func TestAPausedSessionSaysWhatHasNotStoodStillYet(t *testing.T) {
	r := newRig(t)
	s := r.create("")
	_, err := r.all.Start(t.Context(), enginetest.Alice(), s.SessionID)
	r.No(err)
	expect.Of(r.all.Pause(t.Context(), enginetest.Alice(), s.SessionID, "lunch"))(r.T)
	s, err = r.all.Get(t.Context(), enginetest.Acme, s.SessionID)
	expect.True(t, err == nil && s.Shown() == "pausing" && s.State == session.Paused && s.Reason == "lunch",
		"%+v, %v: shown as %s, want pausing", s, err, s.Shown())
}

func TestAStopThatWasCutShortIsFinishedAfterARestart(t *testing.T) {
	r := newRig(t)
	s := r.create("")
	r.broken = errors.New("the tasks can't be read")
	expect.Err(t, expect.Fault(r.all.Stop(t.Context(), enginetest.Alice(), s.SessionID, "done")), r.broken, "stop")
	r.Reopen()
	r.broken = nil
	r.No(r.all.Finish(t.Context(), enginetest.Acme))
	r.No(r.all.Finish(t.Context(), enginetest.Acme))
	want := []string{s.SessionID + ": session stopped: done"}
	expect.True(t, slices.Equal(r.canceled, want), "cancelled %v, want %v, once", r.canceled, want)
	expect.Is(t, r.all.State(enginetest.Acme, s.SessionID), "", "a stopped session is")
	r.Proven(enginetest.Acme)
}

func TestAListNamesTheNewestSessionsFirst(t *testing.T) {
	r := newRig(t)
	var want []string
	for range 5 {
		want = append([]string{r.create("").SessionID}, want...)
	}
	_, err := r.all.Start(t.Context(), enginetest.Alice(), want[0])
	r.No(err)
	for _, c := range []struct {
		f     core.Filter
		want  []string
		total int
	}{
		{core.Filter{Page: 1, Size: 2}, want[:2], 5},
		{core.Filter{Page: 3, Size: 2}, want[4:], 5},
		{core.Filter{Page: 4, Size: 2}, nil, 5},
		{core.Filter{Status: "running"}, want[:1], 1},
	} {
		page := expect.Of(r.all.List(t.Context(), enginetest.Acme, c.f))(r.T)
		var got []string
		for _, s := range page.Items {
			got = append(got, s.SessionID)
		}
		expect.True(t, slices.Equal(got, c.want) && page.Info.Total == c.total, "%+v: %v of %d, want %v of %d", c.f, got, page.Info.Total, c.want, c.total)
	}
	_, err = r.all.List(t.Context(), enginetest.Acme, core.Filter{Status: "sleeping"})
	expect.Is(t, core.AsError(err).Code, core.InvalidInput, "an unknown state")
}
