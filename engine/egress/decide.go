package egress

import (
	"context"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Verdict is the answer to one connection or request.
type Verdict struct {
	Allowed bool
	Asked   bool   // no rule allows it, but an answer, which holds once or for longer
	Private bool   // the host's addresses may be closed ones
	Reason  string // of a refusal, for who is refused
}

// haltedLook is how often a connection looks whether an emergency stop is over.
const haltedLook = 250 * time.Millisecond

// Decide says whether a connection may be made or a request be sent. It blocks
// while a person is asked, at most for the service's patience, and until ctx ends.
func (s *Service) Decide(ctx context.Context, from Origin, to Request) Verdict {
	for {
		if v, over := s.decide(ctx, from, to); over {
			return v
		}
	}
}

// decide is Decide once; over is false when the rules, or what was answered, have to be
// looked at again.
func (s *Service) decide(ctx context.Context, from Origin, to Request) (v Verdict, over bool) {
	if err := s.unhalted(ctx, from.Tenant); err != nil {
		return s.refuse(ctx, from, to, refusal{code: "halted", why: err.Error()}), true
	}
	found, _ := s.rule(&from, &to)
	switch {
	case found.deny != nil:
		why := "egress rule " + found.deny.ID() + " denies it"
		if to.Method == "" && found.deny.scoped() {
			why = "egress rule " + found.deny.ID() + " denies a part of it, and nobody looks into this connection (option inspect)"
		}
		return s.refuse(ctx, from, to, refusal{code: "rule", why: why, rule: found.deny.ID()}), true
	case found.allow != nil:
		return Verdict{Allowed: true, Private: found.private}, true
	}
	why := Closed(to.Addr())
	if to.Host == localhost {
		why = "loopback"
	}
	if (to.Addr().IsValid() || to.Host == localhost) && why != "" { // a person who says yes to a card opens no such door
		return s.refuse(ctx, from, to, refusal{code: "closed", why: fmt.Sprintf("the address is %s and no egress rule names it", why)}), true
	}
	src := s.source(&from)
	if src.unready { // what it wants before it can work is nobody's question
		return s.refuse(ctx, from, to, refusal{code: "unready", why: "the agent can't work yet, and no egress rule names the host"}), true
	}
	said, over := s.ask(ctx, from, src, to)
	if over && said.why != "" {
		return s.refuse(ctx, from, to, said), true
	}
	return Verdict{Allowed: over, Asked: true}, over
}

// Denied reports whether a rule denies it now, also for an address that a name
// led to; changed is closed when that may be otherwise.
func (s *Service) Denied(from Origin, to Request) (denied bool, changed <-chan struct{}) {
	found, changed := s.rule(&from, &to)
	return found.deny != nil, changed
}

// Opaque reports whether a rule keeps a host from being looked into.
func (s *Service) Opaque(from Origin, to Target) bool {
	found, _ := s.rule(&from, &Request{Target: to})
	return found.opaque
}

// Cut records that the proxy ended or refused what was allowed: code is one word
// for the kind of reason, why is for people.
func (s *Service) Cut(ctx context.Context, from Origin, to Request, code, why string) {
	s.refuse(ctx, from, to, refusal{code: code, why: why})
}

func (s *Service) rule(from *Origin, to *Request) (found ruling, changed <-chan struct{}) {
	now := s.ledger.Clock().Now()
	from.project = s.project(from)
	changed = s.rules.Look(func() { found = s.index(from.Tenant).rule(from, to, now) })
	return found, changed
}

// unhalted waits until no emergency stop holds the tenant.
func (s *Service) unhalted(ctx context.Context, tenant string) error {
	if !s.halted(tenant) {
		return nil
	}
	tick := time.NewTicker(haltedLook)
	defer tick.Stop()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	for s.halted(tenant) {
		select {
		case <-tick.C:
		case <-late.C:
			return core.Errorf(core.Denied, "the emergency stop is on")
		case <-s.life.Done():
			return core.Errorf(core.Denied, "the engine stops")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// refusal is why a connection is not made; the zero value is none.
type refusal struct {
	code string // one word
	why  string
	rule string
	// approval is the question that a person was asked, under this policy.
	approval, policy string
	standing         string // the always rule that answered for a person
}

// refuse counts a refusal, and records the first of its kind: a program that
// tries again and again fills no log.
func (s *Service) refuse(ctx context.Context, from Origin, to Request, no refusal) Verdict {
	src := s.source(&from)
	if s.countRefusal(&from, src.task, to, no.code) {
		// Who is refused hears why even when it can't be written down.
		_ = s.ledger.Refuse(ctx, speaker(&from), audit.Entry{
			Type: "egress.refused", Subject: subjectHost, ID: to.Target.String(), Detail: s.detail(&from, &src, to, no),
		}, nil)
	}
	return Verdict{Reason: no.why}
}

// detail is what the audit log says about one connection or request.
func (s *Service) detail(from *Origin, src *source, to Request, no refusal) map[string]any {
	d := map[string]any{"host": to.Host, "port": to.Port, "run": from.Run}
	if from.Agent == "" && len(src.agents) > 0 {
		d["agents"] = src.agents[:min(len(src.agents), maxAgents)]
	}
	if len(src.during) > 0 {
		d["during"] = src.during
	}
	for name, value := range map[string]string{
		"task_id": src.task, "agent": from.Agent, "process": processName(from.Process),
		"method": to.Method, "path": to.Shown(),
		"code": no.code, "reason": no.why, "rule": no.rule, "approval_id": no.approval,
	} {
		if value != "" {
			d[name] = value
		}
	}
	return d
}

// speaker is in whose name a connection is recorded.
func speaker(from *Origin) core.Caller {
	by := core.Caller{Tenant: from.Tenant, Name: from.Agent, Kind: core.Agent, Door: core.DoorEngine}
	if by.Name == "" {
		by.Name = from.Task
	}
	if by.Name == "" {
		by.Name = "process"
	}
	return by
}
