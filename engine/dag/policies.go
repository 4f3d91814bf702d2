package dag

import (
	"cmp"
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// PolicyChange is one entry of the history of policies.
type PolicyChange struct {
	PolicyID string  `json:"policy_id"`
	Change   string  `json:"change"`          // proposed, tested, backtested, activated, withdrawn, stated
	Policy   *Policy `json:"policy,omitzero"` // as known then; absent when it was only named
	Active   bool    `json:"active"`          // rules now
	By       string  `json:"by,omitempty"`    // who did it, where a call says so
	AgentID  string  `json:"agent_id"`
	RunID    string  `json:"run_id,omitempty"`
	Notes    string  `json:"notes,omitempty"`
	EventID  string  `json:"event_id"`
	TS       Time    `json:"ts"`
}

// Policies lists what policies went through, newest first: the events that
// activate a policy, or state something of one.
func (d *DAG) Policies(ctx context.Context, tenant string, f core.Filter) (core.Page[PolicyChange], error) {
	active := ""
	return list(ctx, d, tenant, Query{Filter: f}, func(r reader, _ *Query) ([]listed, error) {
		var err error
		if active, err = r.activePolicy(^uint64(0)); err != nil {
			return nil, err
		}
		n, err := r.last(policies, record.Key{past})
		return []listed{{policies, record.Key{past}, n}}, err
	}, nil, func(r reader, e Recorded) (PolicyChange, error) {
		c, err := r.policyChange(e)
		c.Active = c.Change == "activated" && e.Event.EventID == active
		return c, err
	})
}

// activePolicy is the event that activated the policy which ruled before a
// pos; "" when none did.
func (r reader) activePolicy(before uint64) (string, error) {
	n, err := r.last(policies, record.Key{active})
	if err != nil || n == 0 {
		return "", err
	}
	l := listed{policies, record.Key{active}, n}
	if before != ^uint64(0) {
		if l.n, err = r.upto(l, before-1); err != nil || l.n == 0 {
			return "", err
		}
	}
	pos, err := r.entry(l, l.n)
	if err != nil {
		return "", err
	}
	e, err := r.event(pos)
	return e.Event.EventID, err
}

func (r reader) policyChange(e Recorded) (PolicyChange, error) {
	c := PolicyChange{AgentID: e.Event.AgentID, RunID: e.Event.RunID, EventID: e.Event.EventID, TS: e.Event.TS}
	for _, n := range e.Event.Nodes {
		if p, ok := n.Body.(*Policy); ok {
			c.PolicyID, c.Policy, c.Change = p.ID, p, "stated"
			if p.Kind == PolicyProposal {
				c.Change = "proposed"
			}
		}
	}
	if err := r.policyCall(e, &c); err != nil {
		return c, err
	}
	b, ok := e.Event.Body.(*PolicyActivated)
	if !ok {
		return c, nil
	}
	c.PolicyID, c.Change, c.Notes = b.PolicyRef, "activated", b.Notes
	num, _, err := r.num(nameKey(NodeRef{TypePolicy, b.PolicyRef}))
	if err != nil {
		return c, err
	}
	v, err := r.version(num, e.Pos+1)
	if v != nil {
		c.Policy = v.Node.Body.(*Policy)
	}
	return c, err
}

// policyCall says what call a change came of, by its result or correlation.
func (r reader) policyCall(e Recorded, c *PolicyChange) error {
	call := e.Event.CorrelationID
	result, of := e.Event.Body.(*ToolResult)
	if of {
		call = result.CallID
	}
	if call == "" || e.Event.RunID == "" {
		return nil
	}
	stream, _, err := r.num(nameKey(NodeRef{TypeRun, e.Event.RunID}))
	if err != nil {
		return err
	}
	id, pos, err := r.callOf(stream, call)
	if err != nil || id == "" {
		return err
	}
	called, err := r.event(pos)
	if err != nil {
		return err
	}
	made := called.Event.Body.(*ToolCall)
	var args struct {
		By   string   `json:"by"`
		Rest core.Raw `json:",embed"`
	}
	if core.Decode(made.Args, &args) == nil { // whoever calls names them as they like
		c.By = args.By
	}
	for did, change := range map[string]string{
		"propose": "proposed", "test": "tested", "backtest": "backtested", "withdraw": "withdrawn", "activate": "first of two", "restore": "first of two",
	} {
		if of && made.Tool == did {
			c.Change = change
		}
	}
	return nil
}

// Fork is one entry of the history of forks: a branch, or a subagent.
type Fork struct {
	AgentID    string       `json:"agent_id"` // that was forked, or made the subagent
	FromBranch string       `json:"from_branch,omitempty"`
	ToBranch   string       `json:"to_branch,omitempty"`
	AtEvent    *EventRef    `json:"at_event,omitzero"`
	VolumePlan []VolumePlan `json:"volume_plan,omitempty"`
	Subagents  []string     `json:"subagents,omitempty"`
	EventID    string       `json:"event_id"`
	TS         Time         `json:"ts"`
}

// Forks lists where agents come from, newest first.
func (d *DAG) Forks(ctx context.Context, tenant string, f core.Filter) (core.Page[Fork], error) {
	return list(ctx, d, tenant, Query{Filter: f}, func(r reader, _ *Query) ([]listed, error) {
		n, err := r.last(forks, nil)
		return []listed{{rows: forks, n: n}}, err
	}, nil, func(_ reader, e Recorded) (Fork, error) { return forkOfEvent(e), nil })
}

func forkOfEvent(e Recorded) Fork {
	out := Fork{AgentID: e.Event.AgentID, EventID: e.Event.EventID, TS: e.Event.TS}
	if b, ok := e.Event.Body.(*AgentForked); ok {
		out.FromBranch, out.ToBranch, out.AtEvent, out.VolumePlan = b.FromBranch, b.ToBranch, &b.AtEvent, b.VolumePlan
	}
	for _, n := range e.Event.Nodes {
		if s, ok := n.Body.(*Subagent); ok {
			out.Subagents = append(out.Subagents, s.ID)
			out.AgentID = s.ParentAgentID
		}
	}
	return out
}

// Ancestor is one step of an ancestry.
type Ancestor struct {
	Depth   int      `json:"depth"` // from 1
	Node    NodeRef  `json:"node"`  // Agent, Branch, Event or Run
	Edge    EdgeType `json:"edge"`  // FORKED_FROM or SPAWNED_FROM
	Of      NodeRef  `json:"of"`    // whose ancestor it is
	EventID string   `json:"event_id"`
	TS      Time     `json:"ts"`
}

// Ancestry lists where an agent or branch (AGENT_ID/BRANCH) comes from: the
// event and agent that it was forked from, the agent that spawned it, and so
// on, nearest first, 100 generations at most.
func (d *DAG) Ancestry(ctx context.Context, tenant, id string) ([]Ancestor, error) {
	all := []Ancestor{}
	f := &problems{}
	if f.name("agent", id); len(f.all) > 0 {
		return nil, f.err()
	}
	err := d.view(ctx, tenant, "read an ancestry", func(r reader) error {
		known := false
		level, seen := []NodeRef{{TypeBranch, id}, {TypeAgent, id}}, map[NodeRef]bool{{TypeAgent, id}: true}
		for depth := 1; depth <= maxDepth && len(level) > 0 && len(all) < maxSteps; depth++ {
			var next []NodeRef
			for _, of := range level {
				found, there, err := r.parents(of, depth)
				if err != nil {
					return err
				}
				known = known || there
				all = append(all, found...)
				for _, a := range found {
					if a.Node.Type == TypeAgent && !seen[a.Node] {
						seen[a.Node] = true
						next = append(next, a.Node)
					}
				}
			}
			level = next
		}
		if !known {
			return core.Missing("agent", id)
		}
		return nil
	})
	return all, err
}

// parents are what a branch or an agent comes from. An agent is also the
// subagent of its id.
func (r reader) parents(of NodeRef, depth int) (all []Ancestor, known bool, err error) {
	names := []NodeRef{of}
	if of.Type == TypeAgent {
		names = append(names, NodeRef{TypeSubagent, of.ID})
	}
	for _, name := range names {
		num, _, err := r.num(nameKey(name))
		if err != nil {
			return nil, false, err
		}
		if num == 0 {
			continue
		}
		known = true
		for _, t := range []EdgeType{ForkedFrom, SpawnedFrom} {
			err := outEdges.Within(r, record.Seq(num).Byte(relationCode(t)), nil, nil, false, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
				told, err := r.detailAt(rest.Seq())
				if err != nil {
					return false, err
				}
				i := int(rest.Short())
				if i >= len(told.Edges) {
					return false, core.Errorf(core.Internal, "event %d has no edge %d", told.Pos, i)
				}
				all = append(all, Ancestor{depth, told.Edges[i].To, t, of, told.Event.EventID, told.Event.TS})
				return len(all) < maxFan, nil
			})
			if err != nil {
				return nil, false, err
			}
		}
	}
	core.Sort(all, func(a, b Ancestor) int {
		return cmp.Or(a.TS.at.Compare(b.TS.at), cmp.Compare(a.EventID, b.EventID))
	})
	return all, known, nil
}
