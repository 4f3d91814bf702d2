// Package presence knows who is here now: each cockpit and what it looks at.
// It is about the living only and keeps nothing; what operators did is in the
// audit log.
package presence

import (
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/core"
)

// Visitor is one cockpit of an operator.
type Visitor struct {
	ID    uint64    `json:"id"`
	Name  string    `json:"name"`
	Role  string    `json:"role"`
	Door  core.Door `json:"door"`
	Since time.Time `json:"since"`
	// Approval is the one whose card is before them; "" for none.
	Approval string `json:"approval_id,omitempty"`
}

// Book is who is here, by tenant. It is safe for concurrent use.
type Book struct {
	clock core.Clock
	ring  func(tenant string)

	mu   sync.Mutex
	last uint64
	here map[string][]Visitor
	made time.Time
	came map[string]time.Time // when somebody did while nobody was here
	left map[string]time.Time // when the last one did
}

// New makes an empty book; ring is called after each change in a tenant.
func New(clock core.Clock, ring func(tenant string)) *Book {
	if clock == nil {
		clock = core.SystemClock{}
	}
	return &Book{clock: clock, ring: ring, here: map[string][]Visitor{}, made: clock.Now().UTC(), came: map[string]time.Time{}, left: map[string]time.Time{}}
}

// Here lists a tenant's visitors in the order that they came. The slice is
// the caller's.
func (b *Book) Here(tenant string) []Visitor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.here[tenant])
}

// Away is when nobody was here last, as far as this book knows: from the last visitor's
// leaving, or from when it was made, until the next one came; until is zero while nobody
// has.
func (b *Book) Away(tenant string) (from, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from = b.made
	if at, is := b.left[tenant]; is {
		from = at
	}
	if len(b.here[tenant]) > 0 {
		until = b.came[tenant]
	}
	return from, until
}

// Enter notes a visitor until Leave.
func (b *Book) Enter(tenant string, v Visitor) *Stay {
	b.mu.Lock()
	b.last++
	v.ID, v.Since = b.last, b.clock.Now().UTC()
	if len(b.here[tenant]) == 0 {
		b.came[tenant] = v.Since
	}
	b.here[tenant] = append(b.here[tenant], v)
	b.mu.Unlock()
	b.ring(tenant)
	return &Stay{b: b, tenant: tenant, id: v.ID}
}

// Stay is one visitor's.
type Stay struct {
	b      *Book
	tenant string
	id     uint64
}

// ID is the visitor's among those that are here.
func (s *Stay) ID() uint64 { return s.id }

// Look notes the approval that is before the visitor; "" for none.
func (s *Stay) Look(approval string) {
	if s.change(func(v *Visitor) bool {
		same := v.Approval == approval
		v.Approval = approval
		return !same
	}) {
		s.b.ring(s.tenant)
	}
}

func (s *Stay) change(edit func(*Visitor) bool) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for i := range s.b.here[s.tenant] {
		if v := &s.b.here[s.tenant][i]; v.ID == s.id {
			return edit(v)
		}
	}
	return false
}

// Leave ends the stay. Leaving twice does nothing.
func (s *Stay) Leave() {
	s.b.mu.Lock()
	all := s.b.here[s.tenant]
	left := slices.DeleteFunc(slices.Clone(all), func(v Visitor) bool { return v.ID == s.id })
	gone := len(left) < len(all)
	if s.b.here[s.tenant] = left; len(left) == 0 {
		delete(s.b.here, s.tenant)
		s.b.left[s.tenant] = s.b.clock.Now().UTC()
	}
	s.b.mu.Unlock()
	if gone {
		s.b.ring(s.tenant)
	}
}
