package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
)

// Bounds of what is kept and written down of one run.
const (
	maxHosts    = 1000 // hosts with a sum of their own
	maxUsed     = 100  // events of sums, by bytes; the others are one
	maxTally    = 64   // hosts of a Tally; the others are one
	maxRefusals = 100  // events of refusals; the others are counted
)

type runKey struct{ tenant, run string }

// run is what a run did with the network; Service.mu guards it.
type run struct {
	from       Origin
	sums       sums
	open       map[Request]*question
	denied     map[Request]refusal // by a person
	unanswered map[Request]int
	asked      int
	told       map[told]bool // refusals that are in the log
}

type told struct {
	to     Target
	method string
	code   string
}

// run is the state of an origin's run; s.mu is held.
func (s *Service) run(from *Origin) *run {
	key := runKey{from.Tenant, cmp.Or(from.Run, from.Task, from.Agent)}
	r := s.runs[key]
	if r == nil {
		r = &run{from: *from, sums: newSums(), open: map[Request]*question{}, denied: map[Request]refusal{}, unanswered: map[Request]int{}, told: map[told]bool{}}
		s.runs[key] = r
	}
	return r
}

// countRefusal reports whether a refusal is to be written down.
func (s *Service) countRefusal(from *Origin, to Request, code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	for t := range s.tallies {
		if t.of(from) {
			t.sums.add(to.Target, Sum{Refused: 1})
		}
	}
	r := s.run(from)
	r.sums.add(to.Target, Sum{Refused: 1})
	mark := told{to.Target, to.Method, code}
	if r.told[mark] || len(r.told) >= maxRefusals {
		return false
	}
	r.told[mark] = true
	return true
}

// EndRun writes down what a run sent and received, one event a host, and
// forgets it. Call it once the run's last connection is over; run is the
// Origin's Run, or its Task or Agent where that was empty.
func (s *Service) EndRun(ctx context.Context, tenant, run string) error {
	key := runKey{tenant, run}
	s.mu.Lock()
	r := s.runs[key]
	delete(s.runs, key)
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	return s.write(ctx, r)
}

func (s *Service) endAll() error {
	s.mu.Lock()
	all := s.runs
	s.runs = map[runKey]*run{}
	s.mu.Unlock()
	var errs []error
	for _, r := range all {
		errs = append(errs, s.write(context.Background(), r))
	}
	return errors.Join(errs...)
}

// write records the sums of a run that nobody adds to any more.
func (s *Service) write(ctx context.Context, r *run) error {
	all := r.sums.list(maxUsed)
	if len(all) == 0 {
		return nil
	}
	trace := ""
	if r.from.Task != "" {
		if t, err := s.tasks.Get(ctx, r.from.Tenant, r.from.Task); err == nil {
			trace = t.TraceID
		}
	}
	r.from.Process = "" // the sum is of all of them
	err := s.ledger.Update(context.WithoutCancel(ctx), speaker(&r.from), func(tx *audit.Tx) error {
		for _, one := range all {
			detail := s.detail(&r.from, Request{Target: one.Target}, refusal{})
			detail["connections"], detail["refused"], detail["sent_bytes"], detail["received_bytes"] = one.Connections, one.Refused, one.Sent, one.Received
			if _, err := tx.Record(audit.Entry{Type: "egress.used", Trace: trace, Subject: subjectHost, ID: one.Target.String(), Detail: detail}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write down what run %s sent: %w", r.from.Run, err)
	}
	return nil
}
