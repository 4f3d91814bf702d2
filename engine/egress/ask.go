package egress

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Bounds of what one run may ask, so that a program that tries every host
// there is fills no screen.
const (
	maxOpen       = 8   // questions at once
	maxTogether   = 16  // hosts of one question
	maxAsked      = 100 // questions in all
	maxUnanswered = 3   // questions about one host that nobody answered
)

// moment is how long a question about a host waits for others to be asked about with
// it: a package manager wants several at once.
const moment = 200 * time.Millisecond

// topic tells a run's questions apart: one is about all hosts that the same rule leaves
// to a person for the same task. A request, and what no person decides, is put alone.
type topic struct {
	task, rule, policy string
	risk               judge.Risk
	alone              Request // as Request.question has it
}

// question is one that connections of a run wait for.
type question struct {
	done    chan struct{} // closed once it is over
	wants   []Request     // the first of each thing that it is about; once it is over, those that it named
	said    refusal       // about these, once it is over
	waiters int
	stop    context.CancelFunc
	widen   func() // puts it anew, with all that is wanted by now
}

// netArgs is what an approval of a connection or request is bound to.
type netArgs struct {
	Host    string   `json:"host"`
	Port    uint16   `json:"port"`
	Others  []string `json:"other_hosts,omitempty"` // HOST:PORT that are wanted with it
	Method  string   `json:"method,omitempty"`      // of a request
	Path    string   `json:"path,omitempty"`
	Process string   `json:"process,omitempty"`
}

// ask puts a connection or request before the judge, or waits for the answer to a
// question of the same run. It is not over when a rule has settled it meanwhile, or
// when the answer was about less.
func (s *Service) ask(ctx context.Context, from Origin, src source, to Request) (said refusal, over bool) {
	q, said := s.join(ctx, from, src, to)
	if q == nil {
		return said, true
	}
	for ruled := false; !ruled && !over; {
		found, changed := s.rule(&from, &to)
		if ruled = found.allow != nil || found.deny != nil; ruled {
			break
		}
		select {
		case <-q.done:
			return q.said, q.about(to)
		case <-changed:
		case <-ctx.Done():
			over = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiters--; q.waiters == 0 {
		q.stop()
	}
	return refusal{code: "gone", why: "the connection was given up"}, over
}

// about reports whether a question is about a connection or request.
func (q *question) about(to Request) bool {
	return slices.ContainsFunc(q.wants, func(r Request) bool { return r.question() == to.question() })
}

// join finds the question of a run that a host belongs to, or begins it; without one
// it tells what was said of the host before, or why nobody is asked. A yes spares the
// question alone: another policy is asked anew.
func (s *Service) join(ctx context.Context, from Origin, src source, to Request) (*question, refusal) {
	policy := s.judge.PolicyVersion(from.Tenant)
	s.mu.Lock()
	said, is := s.heard(ctx, s.run(&from), to, policy, "")
	s.mu.Unlock()
	if is {
		return nil, said
	}
	v := s.judge.Evaluate(ctx, from.Tenant, s.question(ctx, &from, &src, []Request{to}))
	about := topic{task: src.task, rule: v.Asking(), policy: v.PolicyVersion, risk: v.Risk}
	switch {
	case v.Decision != judge.HITL:
		about.alone = to
	case to.Method != "":
		about.alone = to.question()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run(&from)
	if said, is := s.heard(ctx, r, to, v.PolicyVersion, about.rule); is { // by now
		return nil, said
	}
	q := r.open[about]
	there := q != nil && q.waiters > 0
	switch {
	case there && q.about(to):
		q.waiters++
		return q, refusal{}
	case s.closed:
		return nil, refusal{code: "closing", why: "the engine stops"}
	case r.unanswered[to.question()] >= maxUnanswered:
		return nil, refusal{code: "unanswered", why: fmt.Sprintf("nobody answered %d questions about it", maxUnanswered)}
	case r.asked >= maxAsked:
		return nil, refusal{code: "limit", why: fmt.Sprintf("this run has asked %d times already", maxAsked)}
	case there && len(q.wants) >= maxTogether:
		return nil, refusal{code: "limit", why: fmt.Sprintf("a question about %d hosts is open already", maxTogether)}
	case there:
		q.waiters++
		q.wants = append(q.wants, to)
		q.widen()
		return q, refusal{}
	case len(r.open) >= maxOpen:
		return nil, refusal{code: "limit", why: fmt.Sprintf("%d questions of this run are open already", maxOpen)}
	}
	life, stop := context.WithCancel(s.life)
	q = &question{done: make(chan struct{}), wants: []Request{to}, waiters: 1, stop: stop, widen: func() {}}
	r.open[about] = q
	s.all.Go(func() {
		defer stop()
		s.pursue(life, r, about, q, &from, &src)
	})
	return q, refusal{}
}

// pursue puts a question, anew whenever a host joins it, until it is over. What is said
// holds for the hosts that it named, and for the rest of the run where a person said it or an
// always rule did: a rule is used by runs, not by connections.
func (s *Service) pursue(life context.Context, r *run, about topic, q *question, from *Origin, src *source) {
	var named []Request
	said := refusal{code: "wider"}
	for said.code == "wider" {
		ctx, cancel := context.WithCancelCause(life)
		s.mu.Lock()
		named = slices.Clone(q.wants)
		q.widen = func() { cancel(judge.ErrWider) }
		r.asked++
		s.mu.Unlock()
		if about.alone == (Request{}) {
			core.Within(ctx.Done(), moment)
		}
		said = s.put(ctx, cancel, from, src, named)
		cancel(nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.open[about] == q {
		delete(r.open, about)
	}
	if said.policy != "" && said.policy != about.policy {
		named = nil // another policy may deny some of them
	}
	for _, to := range named {
		switch {
		case said.code == "unanswered":
			r.unanswered[to.question()]++
		case said.standing != "" || said.approval != "" && (said.why == "" || said.code == "person"):
			said.rule = about.rule
			r.said[to.question()] = said
		}
	}
	q.said, q.wants = said, named
	close(q.done)
}

var errLate = errors.New("nobody answered in time")

// put asks the judge; cancel ends ctx. A fault of ours refuses.
func (s *Service) put(ctx context.Context, cancel context.CancelCauseFunc, from *Origin, src *source, wants []Request) refusal {
	ask := s.question(ctx, from, src, wants)
	approval := ""
	note := func(tx *audit.Tx, d *judge.GateDecision) error {
		for _, to := range wants {
			detail := s.detail(from, src, to, refusal{rule: d.RuleID, approval: approval})
			detail["decision_id"] = d.DecisionID
			if _, err := tx.Record(audit.Entry{Type: "egress.allowed", Trace: ask.TraceID, Subject: subjectHost, ID: to.Target.String(), Detail: detail}); err != nil {
				return err
			}
		}
		return nil
	}
	reply, err := s.judge.Request(ctx, judge.Request{
		By: speaker(from), Ask: ask, Stop: ctx.Done(), Apart: true,
		Held: func() (bool, <-chan struct{}) { return s.halted(from.Tenant), nil },
		Record: func(tx *audit.Tx, step judge.Step) error {
			if approval = step.Approval; step.Name == judge.Requested && approval != "" {
				tx.OnCommit(func() { time.AfterFunc(s.patience, func() { cancel(errLate) }) })
			}
			if step.Name == judge.Started || step.Decision.Decision == judge.Approve {
				return note(tx, &step.Decision)
			}
			return nil
		},
	})
	switch {
	case err == nil && reply.Approved:
		yes := refusal{approval: approval, policy: reply.Decision.PolicyVersion}
		if reply.Decision.ReasonCode == judge.ReasonAlways {
			yes.standing = reply.Decision.RuleID
		}
		return yes
	case err == nil && approval != "" && reply.Decision.Decision == judge.HITL: // no person said no
		return refusal{code: "void", why: reply.Reason, approval: approval}
	case err == nil:
		no := refusal{code: "person", why: "denied", rule: reply.Decision.RuleID, approval: approval, policy: reply.Decision.PolicyVersion}
		if approval == "" {
			no.code = "policy"
		}
		switch {
		case approval != "" && reply.Decision.DecidedBy != "":
			no.why = "denied by " + reply.Decision.DecidedBy
		case approval == "":
			no.why = "denied by " + reply.Decision.Decider()
		}
		if reply.Reason != "" {
			no.why += ": " + reply.Reason
		}
		return no
	case errors.Is(context.Cause(ctx), judge.ErrWider):
		return refusal{code: "wider"}
	case errors.Is(context.Cause(ctx), errLate):
		return refusal{code: "unanswered", why: fmt.Sprintf("nobody answered within %s", s.patience), approval: approval}
	case s.life.Err() != nil:
		return refusal{code: "closing", why: "the engine stops"}
	}
	return refusal{code: "fault", why: "no decision could be made"}
}

// question is what the judge is asked.
func (s *Service) question(ctx context.Context, from *Origin, src *source, all []Request) judge.Ask {
	process, to := processName(from.Process), all[0]
	args := netArgs{Host: to.Host, Port: to.Port, Method: to.Method, Path: to.Shown(), Process: process}
	for _, other := range all[1:] {
		args.Others = append(args.Others, other.String())
	}
	who, wants := src.who(from), "connects to "+strings.Join(append([]string{to.Target.String()}, args.Others...), ", ")
	if to.Method != "" {
		wants = fmt.Sprintf("asks %s for %s %s", to.Target, to.Method, to.Shown())
		if to != to.question() {
			wants += ", and for what else it reads there"
		}
	}
	ask := judge.Ask{
		Gate: judge.GateNet, TaskID: src.task,
		Action: judge.Action{
			Kind: judge.KindNet, Tool: to.String(), CallID: from.Run,
			Args: core.MustEncode(args),
		},
		Agent: src.agent, During: src.during, Driver: src.driver, Risk: judge.Medium,
		Intent: who + " " + wants, By: speaker(from),
		StartBy: s.ledger.Clock().Now().Add(s.patience),
	}
	if process != "" {
		ask.Intent = process + " of " + ask.Intent
	}
	if src.task != "" {
		// A task that can't be read any more is named all the same.
		if t, err := s.tasks.Get(ctx, from.Tenant, src.task); err == nil {
			ask.TraceID, ask.Session, ask.Attempt, ask.Priority = t.TraceID, t.SessionID, t.Attempt, t.Priority
		}
	}
	if ask.TraceID == "" {
		ask.TraceID = core.NewTrace(nil)
	}
	return ask
}

// processName is a process's name as it may be shown: it chose it itself.
func processName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == unicode.ReplacementChar || !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	if len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "")
	}
	return s
}
