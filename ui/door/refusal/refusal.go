// Package refusal tells the audit log what a door refuses: the first time at
// once, then once in a while with a number, so that nobody can fill the log.
package refusal

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/operator"
	"swarmdeck/ui/serve"
)

// maxReason bounds what is kept of a reason, in bytes.
const maxReason = 200

// Operators are what known operators were refused. The first one for a reason is
// told at once, and those that follow once in a while with their number, so
// that nobody can fill the log.
type Operators struct {
	Tell      func(by core.Caller, cause error)
	TellAgain func(by core.Caller, a operator.Again)
	Most      int // reasons that are told apart; 0 means maxNamed

	mu    sync.Mutex
	open  map[whom]*tally
	ended bool
}

// whom a refusal is told of.
type whom struct{ tenant, name string }

// tally is what was refused to one of them since the log was told.
type tally struct {
	by    core.Caller
	since time.Time
	more  map[string]int // by reason, without the one that was told at once
	rest  int            // for reasons beyond the most
	timer *time.Timer
}

// Refused tells of a refusal, or counts it.
func (s *Operators) Refused(by core.Caller, cause error) {
	if s.isNew(by, core.AsError(cause).Message) {
		s.Tell(by, cause)
	}
}

// isNew notes a refusal and says whether it is to be told at once.
func (s *Operators) isNew(by core.Caller, reason string) bool {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return true
	}
	k := whom{by.Tenant, by.Name}
	t := s.open[k]
	if t == nil {
		if s.open == nil {
			s.open = map[whom]*tally{}
		}
		t = &tally{by: by, since: time.Now().UTC(), more: map[string]int{}}
		t.timer = time.AfterFunc(thenTold, func() { s.report(k) })
		s.open[k] = t
	}
	_, known := t.more[reason]
	switch {
	case known:
		t.more[reason]++
	case len(t.more) < cmp.Or(s.Most, maxNamed):
		t.more[reason] = 0
		return true
	default:
		t.rest++
	}
	return false
}

// report tells what was counted. A reason that did not come again is forgotten.
func (s *Operators) report(k whom) {
	s.mu.Lock()
	t := s.open[k]
	if t == nil { // it has ended
		s.mu.Unlock()
		return
	}
	a, any := t.take()
	if any {
		t.timer.Reset(thenTold)
	} else {
		delete(s.open, k)
	}
	s.mu.Unlock()
	if any {
		s.TellAgain(t.by, a)
	}
}

// take is what was counted, if anything was; the caller holds mu.
func (t *tally) take() (a operator.Again, any bool) {
	a = operator.Again{Since: t.since, Until: time.Now().UTC(), Reasons: map[string]int{}, Others: t.rest}
	for reason, n := range t.more {
		if n == 0 {
			delete(t.more, reason)
			continue
		}
		a.Reasons[reason], t.more[reason] = n, 0
	}
	t.since, t.rest = a.Until, 0
	return a, len(a.Reasons)+a.Others > 0
}

// End tells of what is left.
func (s *Operators) End() {
	s.mu.Lock()
	open := s.open
	s.open, s.ended = nil, true
	s.mu.Unlock()
	for _, t := range open {
		t.timer.Stop()
		if a, any := t.take(); any {
			s.TellAgain(t.by, a)
		}
	}
}

// Strangers are told of in the log soon after the first came, and then once in
// a while with their number, so that they can't fill it.
const (
	firstTold = time.Second
	thenTold  = time.Minute
	maxNamed  = 16 // addresses and keys
)

// Strangers counts the connections that were turned away.
type Strangers struct {
	Tell func(operator.Rejected) // keeps what was counted

	mu    sync.Mutex
	now   operator.Rejected
	last  time.Time // it was told
	timer *time.Timer
	ended bool
}

// Refused counts a connection.
func (s *Strangers) Refused(why serve.Refusal, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.now.Reasons[string(why)]++
	if _, known := s.now.From[from]; !known && len(s.now.From) == maxNamed {
		s.now.Others++
		return
	}
	s.now.From[from]++
}

// Key notes a key that nobody has.
func (s *Strangers) Key(print string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	if len(s.now.Keys) < maxNamed && !slices.Contains(s.now.Keys, print) {
		s.now.Keys = append(s.now.Keys, print)
	}
}

// begin has what is counted told in time; the caller holds mu.
func (s *Strangers) begin() {
	if s.now.Reasons != nil {
		return
	}
	now := time.Now()
	s.now = operator.Rejected{Since: now.UTC(), Reasons: map[string]int{}, From: map[string]int{}}
	if !s.ended {
		s.timer = time.AfterFunc(max(firstTold, s.last.Add(thenTold).Sub(now)), s.report)
	}
}

func (s *Strangers) report() {
	s.mu.Lock()
	told := s.now
	told.Until = time.Now().UTC()
	s.now, s.last = operator.Rejected{}, time.Now()
	s.mu.Unlock()
	if len(told.Reasons) > 0 {
		s.Tell(told)
	}
}

// End tells of what is left.
func (s *Strangers) End() {
	s.mu.Lock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.report()
}
