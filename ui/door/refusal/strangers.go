package refusal

import (
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/operator"
	"swarmdeck/ui/serve"
)

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
