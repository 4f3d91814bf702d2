package egress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
)

// Bounds of what one run may ask, so that a program that tries every host
// there is fills no screen.
const (
	maxOpen       = 8   // questions at once
	maxAsked      = 100 // questions in all
	maxUnanswered = 3   // questions about one host that nobody answered
)

// question is one that connections of a run to the same host wait for.
type question struct {
	done    chan struct{} // closed once said is there
	said    refusal
	waiters int
	stop    context.CancelFunc
}

// netArgs is what an approval of a connection or request is bound to.
type netArgs struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Method  string `json:"method,omitempty"` // of a request
	Path    string `json:"path,omitempty"`
	Process string `json:"process,omitempty"`
}

// ask puts a connection or request before the judge, or waits for the answer to
// the same question of the same run. A person's answer holds for the rest of the
// run. It is ruled when a rule has settled it meanwhile.
func (s *Service) ask(ctx context.Context, from Origin, to Request) (said refusal, ruled bool) {
	q, said := s.join(from, to)
	if q == nil {
		return said, false
	}
	for gone := false; !ruled && !gone; {
		found, changed := s.rule(&from, &to)
		if ruled = found.allow != nil || found.deny != nil; ruled {
			break
		}
		select {
		case <-q.done:
			return q.said, false
		case <-changed:
		case <-ctx.Done():
			gone = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiters--; q.waiters == 0 {
		q.stop()
	}
	return refusal{code: "gone", why: "the connection was given up"}, ruled
}

// join finds the question of a run about a host, or begins it; without one it
// tells what was said before, or why nobody is asked.
func (s *Service) join(from Origin, to Request) (*question, refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run(&from)
	if said, ok := r.said[to]; ok {
		return nil, said
	}
	if q := r.open[to]; q != nil && q.waiters > 0 {
		q.waiters++
		return q, refusal{}
	}
	switch {
	case s.closed:
		return nil, refusal{code: "closing", why: "the engine stops"}
	case len(r.open) >= maxOpen:
		return nil, refusal{code: "limit", why: fmt.Sprintf("%d questions of this run are open already", maxOpen)}
	case r.asked >= maxAsked:
		return nil, refusal{code: "limit", why: fmt.Sprintf("this run has asked %d times already", maxAsked)}
	case r.unanswered[to] >= maxUnanswered:
		return nil, refusal{code: "unanswered", why: fmt.Sprintf("nobody answered %d questions about it", maxUnanswered)}
	}
	ctx, cancel := context.WithCancelCause(s.life)
	stop := func() { cancel(nil) }
	q := &question{done: make(chan struct{}), waiters: 1, stop: stop}
	r.open[to] = q
	r.asked++
	s.all.Go(func() {
		defer stop()
		said := s.put(ctx, cancel, from, to)
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.open[to] == q {
			delete(r.open, to)
		}
		switch {
		case said.code == "unanswered":
			r.unanswered[to]++
		case said.approval != "" && (said.why == "" || said.code == "person"):
			r.said[to] = said
		}
		q.said = said
		close(q.done)
	})
	return q, refusal{}
}

var errLate = errors.New("nobody answered in time")

// put asks the judge; cancel ends ctx. A fault of ours refuses.
func (s *Service) put(ctx context.Context, cancel context.CancelCauseFunc, from Origin, to Request) refusal {
	src := s.source(&from)
	ask := s.question(ctx, &from, &src, &to)
	approval := ""
	note := func(tx *audit.Tx, d judge.GateDecision) error {
		detail := s.detail(&from, &src, to, refusal{rule: d.RuleID, approval: approval})
		detail["decision_id"] = d.DecisionID
		_, err := tx.Record(audit.Entry{Type: "egress.allowed", Trace: ask.TraceID, Subject: subjectHost, ID: to.Target.String(), Detail: detail})
		return err
	}
	var asked judge.GateDecision
	reply, err := s.asked.Put(ctx, swarm.Question{
		By: speaker(&from), Ask: ask, Beat: func() {}, Stop: ctx.Done(), Anew: func() {}, Apart: true,
		Held: func() (bool, <-chan struct{}) { return s.halted(from.Tenant), nil },
		Asked: func(tx *audit.Tx, d judge.GateDecision, a *judge.Approval) error {
			if asked = d; a != nil {
				approval = a.ApprovalID
				tx.OnCommit(func() { time.AfterFunc(s.patience, func() { cancel(errLate) }) })
			}
			if d.Decision != judge.Approve {
				return nil
			}
			return note(tx, d)
		},
		Used: func(tx *audit.Tx, _ string, stands bool) error {
			if !stands {
				return nil
			}
			return note(tx, asked)
		},
	})
	switch {
	case err == nil && reply.Approved:
		return refusal{approval: approval}
	case err == nil && approval != "" && reply.Decision.Decision == judge.HITL: // no person said no
		return refusal{code: "void", why: reply.Reason, approval: approval}
	case err == nil:
		no := refusal{code: "person", why: "denied", rule: reply.Decision.RuleID, approval: approval}
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
	case errors.Is(context.Cause(ctx), errLate):
		return refusal{code: "unanswered", why: fmt.Sprintf("nobody answered within %s", s.patience), approval: approval}
	case s.life.Err() != nil:
		return refusal{code: "closing", why: "the engine stops"}
	}
	return refusal{code: "fault", why: "no decision could be made"}
}

// question is what the judge is asked.
func (s *Service) question(ctx context.Context, from *Origin, src *source, to *Request) judge.Ask {
	process := processName(from.Process)
	who, wants := src.who(from), "connects to "+to.Target.String()
	if to.Method != "" {
		wants = fmt.Sprintf("asks %s for %s %s", to.Target, to.Method, to.Shown())
	}
	ask := judge.Ask{
		Gate: judge.GateNet, TaskID: src.task,
		Action: judge.Action{
			Kind: judge.KindNet, Tool: to.String(), CallID: from.Run,
			Args: core.MustEncode(netArgs{to.Host, to.Port, to.Method, to.Shown(), process}),
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

var _ judge.Settler = (*Service)(nil)

// Validate implements judge.Settler: a connection goes where it goes.
func (s *Service) Validate(judge.Approval, core.Raw) (core.Raw, error) {
	return nil, core.Errorf(core.InvalidInput, "edit: a connection can't be changed; approve or deny it").With("field", "edit")
}

// Settle implements judge.Settler.
func (s *Service) Settle(tx *audit.Tx, a judge.Approval, out judge.Outcome) error {
	return s.asked.Settle(tx, a, out)
}
