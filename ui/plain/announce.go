package plain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/view"
	"swarmdeck/ui/pane"
)

// atOnce is how many tasks that ended, and how many subagents that failed,
// are named in one go; the rest is counted.
const atOnce = 5

// pace is the least time between two looks: a busy engine is told about in
// few words.
const pace = 200 * time.Millisecond

// announcer knows what it has told.
type announcer struct {
	eng    *engine.Engine
	tenant string
	tell   func(string)

	mu        sync.Mutex
	approvals map[string]bool
	agents    map[string]string // state by name
	estop     bool
	dead      int64  // dead letters
	asked     int64  // requests without an answer
	seq       uint64 // of the last audit event looked at
	self      uint64 // the operator's own visit; 0 announces no visits
	here      map[uint64]presence.Visitor
}

func newAnnouncer(eng *engine.Engine, tenant string, tell func(string)) *announcer {
	return &announcer{
		eng: eng, tenant: tenant, tell: tell, approvals: map[string]bool{}, agents: map[string]string{},
		seq: eng.Snapshot(tenant).AuditSeq,
	}
}

// watch tells what changes until ctx ends.
func (a *announcer) watch(ctx context.Context) {
	bell := a.eng.Watch(ctx)
	a.look(ctx)
	for range bell {
		a.look(ctx)
		if core.Within(ctx.Done(), pace) {
			return
		}
	}
}

// look tells what has changed since the last look: approvals, tasks that
// ended, agents and subagents that failed, messages that did not arrive, and
// the emergency stop. The first look tells of all that waits.
func (a *announcer) look(ctx context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.eng.Snapshot(a.tenant)
	a.stop(s)
	a.fleet(s)
	a.waiting(ctx, s)
	a.messages(s)
	a.company(s.Visitors)
	if s.AuditSeq > a.seq {
		a.ended(ctx)
	}
}

func (a *announcer) stop(s *view.Snapshot) {
	if s.EStop.On == a.estop {
		return
	}
	a.estop = s.EStop.On
	if a.estop {
		a.tell(fmt.Sprintf("emergency stop: on; by %s: %s", s.EStop.By, s.EStop.Reason))
	} else {
		a.tell("emergency stop: off")
	}
}

// messages tells of dead letters and unanswered requests when there are more
// of them.
func (a *announcer) messages(s *view.Snapshot) {
	if n := s.Bus.Dead; n > a.dead {
		a.tell(fmt.Sprintf("dead letters: %d (%d new); type bus list --status dead", n, n-a.dead))
	}
	if n := s.Bus.Unanswered; n > a.asked {
		a.tell(fmt.Sprintf("requests without an answer: %d; type bus list --status unanswered", n))
	}
	a.dead, a.asked = s.Bus.Dead, s.Bus.Unanswered
}

// waiting tells of approvals that are new or no longer open.
func (a *announcer) waiting(ctx context.Context, s *view.Snapshot) {
	open := make(map[string]bool, len(s.Approvals))
	for _, ap := range s.Approvals {
		open[ap.ApprovalID] = true
		if !a.approvals[ap.ApprovalID] {
			a.tell(fmt.Sprintf("approval %s waits: %s; risk: %s; %sstate: blocked; type answer", ap.ApprovalID, pane.Headline(ap), ap.Risk, byAgent(ap)))
		}
	}
	for id := range a.approvals {
		if open[id] {
			continue
		}
		if ap, err := a.eng.Judge.Approval(ctx, a.tenant, id); err == nil {
			a.tell(fmt.Sprintf("approval %s; state: %s%s", id, ap.Status, how(&ap)))
		}
	}
	a.approvals = open
}

func byAgent(ap *judge.Approval) string {
	if ap.Agent.Name == "" {
		return ""
	}
	return "agent: " + ap.Agent.Name + "; "
}

func how(ap *judge.Approval) string {
	switch {
	case ap.AnsweredBy != "" && ap.AnswerReason != "":
		return "; by " + ap.AnsweredBy + ": " + ap.AnswerReason
	case ap.AnsweredBy != "":
		return "; by " + ap.AnsweredBy
	case ap.VoidReason != "":
		return "; " + ap.VoidReason
	}
	return ""
}

// fleet tells of agents whose state needs a person or stopped needing one.
func (a *announcer) fleet(s *view.Snapshot) {
	now := make(map[string]string, len(s.Agents))
	for _, ag := range s.Agents {
		now[ag.Name] = told(ag)
		before, known := a.agents[ag.Name]
		if before == now[ag.Name] || !loud(before) && !loud(now[ag.Name]) {
			continue
		}
		if known || loud(now[ag.Name]) {
			a.tell(fmt.Sprintf("agent %s; state: %s%s", ag.Name, now[ag.Name], why(ag)))
		}
	}
	a.agents = now
}

// loud are the states that are told.
func loud(state string) bool {
	return state == string(fleet.Failed) || state == string(fleet.Offline) || state == "paused" || state == "stuck" || state == asks
}

// asks is the state of an agent that wants a person, but for an approval,
// which is told of itself.
const asks = "asks for you"

func told(ag *fleet.Agent) string {
	if ag.Attention != "" && ag.Waiting == "" {
		return asks
	}
	return ag.State()
}

func why(ag *fleet.Agent) string {
	switch {
	case ag.Attention != "":
		return "; " + ag.Attention
	case ag.Stuck != nil:
		return "; " + ag.Stuck.Text
	case ag.Reason != "":
		return "; " + ag.Reason
	}
	return ""
}

// ended tells of the tasks that are over, and of the subagents that failed,
// since the last look.
func (a *announcer) ended(ctx context.Context) {
	named, counted := 0, map[string]int{}
	failed := 0 // subagents
	for {
		events, err := a.eng.Audit.Since(ctx, a.tenant, a.seq, 200)
		if err != nil || len(events) == 0 {
			break
		}
		a.seq = events[len(events)-1].Seq
		for i := range events {
			if events[i].EventType == "subagent.failed" {
				if failed++; failed <= atOnce {
					a.subagent(ctx, &events[i])
				}
				continue
			}
			id, state, ok := over(&events[i])
			switch {
			case !ok:
			case named < atOnce:
				named++
				a.tell(a.task(ctx, id, state))
			default:
				counted[state]++
			}
		}
	}
	if failed > atOnce {
		a.tell(fmt.Sprintf("and %d more subagents failed; type subagent list --state failed", failed-atOnce))
	}
	var more []string
	for _, state := range ends {
		if n := counted[state]; n > 0 {
			more = append(more, fmt.Sprintf("%d %s", n, state))
		}
	}
	if more != nil {
		a.tell("and more tasks ended: " + strings.Join(more, ", "))
	}
}

// subagent tells of one that failed.
func (a *announcer) subagent(ctx context.Context, e *audit.Event) {
	var p audit.Payload
	if core.DecodeStored(e.Payload, &p) != nil {
		return
	}
	text := "subagent " + p.ID
	if sub, err := a.eng.Skills.Subagent(ctx, a.tenant, p.ID); err == nil {
		if sub.Name != "" {
			text += " " + sub.Name
		}
		text += "; state: failed; " + sub.Error
	}
	a.tell(text)
}

// over reads the end of a task out of an event.
func over(e *audit.Event) (id, state string, ok bool) {
	var p audit.Payload
	state, ok = strings.CutPrefix(e.EventType, "task.")
	ok = ok && slices.Contains(ends, state) && core.DecodeStored(e.Payload, &p) == nil
	return p.ID, state, ok
}

// ends are the states in which a task is over.
var ends = []string{"succeeded", "failed", "blocked", "timed_out", "cancelled"}

func (a *announcer) task(ctx context.Context, id, state string) string {
	text := "task " + id + " ended; state: " + state
	t, err := a.eng.Tasks.Get(ctx, a.tenant, id)
	if err != nil {
		return text
	}
	if t.ErrorCode != "" && state != "succeeded" {
		text += "; error: " + t.ErrorCode
	}
	if t.Agent != "" {
		text += "; agent: " + t.Agent
	}
	return text + "; " + t.Title
}
