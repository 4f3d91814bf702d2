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
	maxTally    = 64   // hosts of a Tally; the others are one
	maxRefusals = 100  // events of refusals; the others are counted
	maxTasks    = 64   // tasks with sums of their own at once; the others have one without a task
)

type runKey struct{ tenant, run string }

// run is what a run did with the network; Service.mu guards it.
type run struct {
	from       Origin
	used       map[string]*sums // by task, "" where none is known
	open       map[topic]*question
	said       map[Request]refusal // by a person or a rule of one, of all that a question is about; without a reason it is allowed
	unanswered map[Request]int
	asked      int
	told       map[told]bool // refusals that are in the log
}

// heard is what was said of what a run wants; a yes counts under its policy, to a request
// that the same rule leaves to a person, and while the always rule that said it stands. s.mu
// is held.
func (s *Service) heard(ctx context.Context, r *run, to Request, policy, rule string) (said refusal, is bool) {
	said, is = r.said[to.question()]
	return said, is && (said.why != "" || said.policy == policy && (to.Method == "" || said.rule == rule) &&
		(said.standing == "" || s.judge.Stands(ctx, r.from.Tenant, said.standing)))
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
		r = &run{from: *from, used: map[string]*sums{}, open: map[topic]*question{}, said: map[Request]refusal{}, unanswered: map[Request]int{}, told: map[told]bool{}}
		s.runs[key] = r
	}
	return r
}

// sums are those of a task.
func (r *run) sums(task string) *sums {
	if r.used[task] == nil {
		if len(r.used) >= maxTasks {
			task = ""
		}
		if r.used[task] == nil {
			r.used[task] = newSums()
		}
	}
	return r.used[task]
}

// countRefusal reports whether a refusal is to be written down.
func (s *Service) countRefusal(from *Origin, task string, to Request, code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	for t := range s.tallies {
		if t.of(from, task) {
			t.sums.add(to.Target, Sum{Refused: 1})
		}
	}
	r := s.run(from)
	r.sums(task).add(to.Target, Sum{Refused: 1})
	mark := told{to.Target, to.Method, code}
	if r.told[mark] || len(r.told) >= maxRefusals {
		return false
	}
	r.told[mark] = true
	return true
}

// EndRun writes down what a run sent and received, one event a host and task,
// and forgets it. Call it once the run's last connection is over; run is the
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
	return s.write(ctx, r.from, r.used)
}

// EndTask writes down what processes that outlive a task sent and received for
// it. A connection that is still open is in a later sum.
func (s *Service) EndTask(ctx context.Context, tenant, task string) error {
	var errs []error
	s.mu.Lock()
	ended := map[*run]*sums{}
	for key, r := range s.runs {
		if used := r.used[task]; used != nil && key.tenant == tenant && r.from.Task == "" {
			ended[r] = used
			delete(r.used, task)
		}
	}
	s.mu.Unlock()
	for r, used := range ended {
		errs = append(errs, s.write(ctx, r.from, map[string]*sums{task: used}))
	}
	return errors.Join(errs...)
}

func (s *Service) endAll() error {
	s.mu.Lock()
	all := s.runs
	s.runs = map[runKey]*run{}
	s.mu.Unlock()
	var errs []error
	for _, r := range all {
		errs = append(errs, s.write(context.Background(), r.from, r.used))
	}
	return errors.Join(errs...)
}

// write records sums by task that nobody adds to any more.
func (s *Service) write(ctx context.Context, from Origin, used map[string]*sums) error {
	from.Process = "" // the sum is of all of them
	var all []audit.Entry
	for _, task := range slices.Sorted(maps.Keys(used)) {
		src := source{task: task}
		trace := ""
		if task != "" {
			if t, err := s.tasks.Get(ctx, from.Tenant, task); err == nil {
				trace = t.TraceID
			}
		}
		for _, one := range used[task].list(maxUsed) {
			detail := s.detail(&from, &src, Request{Target: one.Target}, refusal{})
			detail["connections"], detail["refused"], detail["sent_bytes"], detail["received_bytes"] = one.Connections, one.Refused, one.Sent, one.Received
			all = append(all, audit.Entry{Type: "egress.used", Trace: trace, Subject: subjectHost, ID: one.Target.String(), Detail: detail})
		}
	}
	if len(all) == 0 {
		return nil
	}
	err := s.ledger.Update(context.WithoutCancel(ctx), speaker(&from), func(tx *audit.Tx) error {
		for _, e := range all {
			if _, err := tx.Record(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write down what run %s sent: %w", from.Run, err)
	}
	return nil
}
