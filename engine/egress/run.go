package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"swarmdeck/engine/audit"
)

// Bounds of what is kept and written down of one run.
const (
	maxHosts    = 1000 // hosts with a sum of their own
	maxUsed     = 100  // events of sums, by bytes; the others are one
	maxRefusals = 100  // events of refusals; the others are counted
)

type runKey struct{ tenant, run string }

// run is what a run did with the network; Service.mu guards it.
type run struct {
	from       Origin
	hosts      map[Target]*Sum
	others     Sum // of hosts past maxHosts
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

// Sum is what went between a run and a host.
type Sum struct {
	Connections int   `json:"connections"`
	Refused     int   `json:"refused,omitzero"`
	Sent        int64 `json:"sent_bytes"`     // to the host
	Received    int64 `json:"received_bytes"` // from it
}

func (s *Sum) add(o Sum) {
	s.Connections += o.Connections
	s.Refused += o.Refused
	s.Sent += o.Sent
	s.Received += o.Received
}

// run is the state of an origin's run; s.mu is held.
func (s *Service) run(from *Origin) *run {
	key := runKey{from.Tenant, cmp.Or(from.Run, from.Task, from.Agent)}
	r := s.runs[key]
	if r == nil {
		r = &run{from: *from, hosts: map[Target]*Sum{}, open: map[Request]*question{}, denied: map[Request]refusal{}, unanswered: map[Request]int{}, told: map[told]bool{}}
		s.runs[key] = r
	}
	return r
}

// sum is a host's part of a run; s.mu is held.
func (r *run) sum(to Target) *Sum {
	one := r.hosts[to]
	switch {
	case one != nil:
	case len(r.hosts) >= maxHosts:
		return &r.others
	default:
		one = &Sum{}
		r.hosts[to] = one
	}
	return one
}

// Used adds a connection that is over: bytes sent to the host and received
// from it.
func (s *Service) Used(from Origin, to Target, sent, received int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.run(&from).sum(to).add(Sum{Connections: 1, Sent: sent, Received: received})
	}
}

// countRefusal reports whether a refusal is to be written down.
func (s *Service) countRefusal(from *Origin, to Request, code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	r := s.run(from)
	r.sum(to.Target).add(Sum{Refused: 1})
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
	if len(r.hosts) == 0 {
		return nil
	}
	order := slices.SortedFunc(maps.Keys(r.hosts), func(a, b Target) int {
		x, y := r.hosts[a], r.hosts[b]
		return cmp.Or(cmp.Compare(y.Sent+y.Received, x.Sent+x.Received), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port))
	})
	others, more := r.others, 0
	if len(order) > maxUsed {
		for _, to := range order[maxUsed:] {
			others.add(*r.hosts[to])
		}
		more, order = len(order)-maxUsed, order[:maxUsed]
	}
	if r.others != (Sum{}) {
		more++
	}
	trace := ""
	if r.from.Task != "" {
		if t, err := s.swarm.Task(ctx, r.from.Tenant, r.from.Task); err == nil {
			trace = t.TraceID
		}
	}
	record := func(tx *audit.Tx, id string, detail map[string]any, sum Sum) error {
		detail["connections"], detail["refused"], detail["sent_bytes"], detail["received_bytes"] = sum.Connections, sum.Refused, sum.Sent, sum.Received
		_, err := tx.Record(audit.Entry{Type: "egress.used", Trace: trace, Subject: subjectHost, ID: id, Detail: detail})
		return err
	}
	r.from.Process = "" // the sum is of all of them
	err := s.ledger.Update(context.WithoutCancel(ctx), speaker(&r.from), func(tx *audit.Tx) error {
		for _, to := range order {
			if err := record(tx, to.String(), s.detail(&r.from, Request{Target: to}, refusal{}), *r.hosts[to]); err != nil {
				return err
			}
		}
		if more == 0 {
			return nil
		}
		return record(tx, "others", s.detail(&r.from, Request{Target: Target{Host: "others"}}, refusal{}), others)
	})
	if err != nil {
		return fmt.Errorf("write down what run %s sent: %w", r.from.Run, err)
	}
	return nil
}
