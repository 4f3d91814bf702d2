package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// Bounds of what a card tells of the rest of the engine.
const (
	aroundQueued = 100
	aroundWaits  = 8  // dependents by name
	aroundOutput = 5  // lines
	aroundPast   = 5  // answers to the same shape
	aroundLike   = 20 // such answers, of whose tasks the cost is taken
)

// surroundings tell what stands around an approval.
type surroundings struct{ e *Engine }

var _ judge.Surroundings = surroundings{}

func (s surroundings) Around(ctx context.Context, a *judge.Approval, past []judge.Approval) (_ *judge.Around, err error) {
	out := &judge.Around{}
	past = past[:min(len(past), aroundLike)]
	if a.Agent.Name != "" || a.TaskID != "" {
		if out.Output, err = s.output(ctx, a); err != nil && !errors.Is(err, core.Kind(core.NotFound)) { // it left
			return nil, err
		}
	}
	err = s.e.Audit.View(ctx, a.TenantID, func(tx *audit.Tx) error {
		if err := s.behind(tx, a, out); err != nil {
			return err
		}
		var costs []judge.Spent
		for i := range past {
			p := &past[i]
			was := judge.Precedent{
				ApprovalID: p.ApprovalID, Status: p.Status, By: p.AnsweredBy, At: p.AnsweredAt, Reason: p.AnswerReason,
				Same: string(p.Action.Args) == string(a.Action.Args) && judge.SameFiles(p.Action.Files, a.Action.Files),
			}
			if p.TaskID != "" && p.TaskID != a.TaskID {
				if status, err := s.e.Tasks.StatusIn(tx, p.TaskID); err == nil { // else it left
					was.Came = string(status)
				}
				if used := s.e.Swarm.Budgets.UsageIn(tx, "task:"+p.TaskID); used.Tokens > 0 || used.CostUSD > 0 {
					costs = append(costs, judge.Spent{Tokens: used.Tokens, CostUSD: used.CostUSD})
				}
			}
			if len(out.Past) < aroundPast {
				out.Past = append(out.Past, was)
			}
		}
		out.Expected = median(costs)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, v := range s.e.Presence.Here(a.TenantID) {
		if v.Approval == a.ApprovalID {
			out.Looking = append(out.Looking, v.Name)
		}
	}
	return out, nil
}

// behind says what waits for the answer, and what its task has cost so far.
func (s surroundings) behind(tx *audit.Tx, a *judge.Approval, out *judge.Around) error {
	add := func(format string, args ...any) { out.Behind = append(out.Behind, fmt.Sprintf(format, args...)) }
	people := []string{}
	if a.RequestedKind == core.Operator && a.RequestedBy != "" {
		people = append(people, a.RequestedBy)
	}
	t, err := s.e.Tasks.In(tx, a.TaskID)
	switch {
	case a.TaskID == "":
	case err != nil: // it left, or is damaged, which is told elsewhere
		add("task %s, which can't be read", a.TaskID)
	default:
		add("task %s: %s", t.TaskID, strings.TrimSpace(string(t.Status)+" "+t.Title))
		if t.CreatedKind == core.Operator && !slices.Contains(people, t.CreatedBy) {
			people = append(people, t.CreatedBy)
		}
		if t.ParentTaskID != "" {
			add("task %s, whose part it is", t.ParentTaskID)
		}
		waits, err := s.e.Tasks.Dependents(tx, t.Seq(), 0, aroundWaits+1)
		if err != nil {
			return err
		}
		for i, seq := range waits {
			if i == aroundWaits {
				add("and more tasks that come after it")
				break
			}
			id := core.NewID(core.TaskPrefix, a.TenantID, seq)
			next, _ := s.e.Tasks.In(tx, id) // without a title where it can't be read
			add("task %s, which comes after it: %s", id, next.Title)
		}
		used := s.e.Swarm.Budgets.UsageIn(tx, "task:"+a.TaskID)
		out.Spent = &judge.Spent{Tokens: used.Tokens, CostUSD: used.CostUSD}
	}
	if a.Agent.Name != "" && a.Gate != judge.GateAgent {
		queued, err := s.e.Swarm.Queued(tx, a.Session, a.Agent.Name, aroundQueued)
		switch {
		case err != nil:
			return err
		case queued == 0:
			add("agent %s", a.Agent.Name)
		case queued == aroundQueued:
			add("agent %s, and %d tasks or more in its queue", a.Agent.Name, queued)
		default:
			add("agent %s, and %d in its queue", a.Agent.Name, queued)
		}
	}
	for _, name := range people {
		add("%s, who asked for it", name)
	}
	return nil
}

// output are the last lines that the agent, else the task, wrote.
func (s surroundings) output(ctx context.Context, a *judge.Approval) ([]string, error) {
	var lines []task.LogLine
	if a.Agent.Name != "" && s.e.Fleet.Known(a.TenantID, a.Agent.Name) {
		page, err := s.e.Fleet.Log(ctx, a.TenantID, a.Agent.Name, core.Filter{Size: aroundOutput})
		if err != nil {
			return nil, err
		}
		lines = page.Items
		slices.Reverse(lines)
	} else if a.TaskID != "" {
		_, last, err := s.e.Tasks.Log(ctx, a.TenantID, a.TaskID, 0, 0)
		if err != nil || last == 0 {
			return nil, err
		}
		if lines, _, err = s.e.Tasks.Log(ctx, a.TenantID, a.TaskID, max(1, last-min(last, aroundOutput)+1), aroundOutput); err != nil {
			return nil, err
		}
	}
	out := make([]string, 0, len(lines))
	question := "asks for " + a.Action.Tool + " " + a.Action.CallID + ":"
	for _, l := range lines {
		if strings.HasPrefix(l.Message, question) { // the card itself says it
			continue
		}
		out = append(out, core.ClipTo(strings.TrimSpace(l.Message), 200))
	}
	return out, nil
}

// median is the middle one of some costs, nil for none.
func median(of []judge.Spent) *judge.Spent {
	if len(of) == 0 {
		return nil
	}
	tokens, cost := make([]int64, len(of)), make([]float64, len(of))
	for i, s := range of {
		tokens[i], cost[i] = s.Tokens, s.CostUSD
	}
	slices.Sort(tokens)
	slices.Sort(cost)
	return &judge.Spent{Tokens: tokens[len(of)/2], CostUSD: cost[len(of)/2], Tasks: len(of)}
}

// workOf is what a connection of an agent's process may be part of.
func (e *Engine) workOf(tenant, agent string) (egress.Work, bool) {
	if e.Fleet == nil { // it is opened later
		return egress.Work{}, false
	}
	now, ok := e.Fleet.Now(tenant, agent)
	w := egress.Work{Project: now.Agent.Project, Runtime: now.Agent.Runtime, Task: now.TaskID}
	switch now.Agent.Status {
	case fleet.Starting, fleet.Offline, fleet.Failed:
		w.Unready = true
	case fleet.Busy: // its program may start for its task
		w.Unready = now.Starts
	case fleet.Idle: // one without a login takes tasks, and says what is wrong
		w.Unready = now.Agent.Reason != ""
	}
	for _, c := range now.Calls {
		w.Calls = append(w.Calls, judge.During{CallID: c.CallID, Tool: c.Tool, Title: c.Title})
	}
	return w, ok
}
