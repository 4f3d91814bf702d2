package skill

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What runs are made of.
const (
	plans       record.Rows[pinned] = "skill.plan"       // by task number
	definitions record.Rows[*Skill] = "skill.definition" // by digest, as it was pinned first
)

// pinned is what a run is made of: definitions as they were when it began. A
// skill that is loaded anew meanwhile changes nothing for it, after a restart
// of the engine neither.
type pinned struct {
	Skill   string   `json:"skill"`           // name@version of what was asked for
	Digests []string `json:"digests"`         // of all it may need
	Newer   bool     `json:"newer,omitempty"` // some of it has changed since the task was judged
}

// readPlan reads what a task's run is made of; no index when it has not begun.
func (s *Skills) readPlan(tx store.Tx, task string) (p pinned, x *index, err error) {
	p, begun, err := plans.Get(tx, ofTask(task))
	if err != nil || !begun {
		return p, nil, err
	}
	all := make([]*Skill, len(p.Digests))
	for i, digest := range p.Digests {
		if all[i], err = loadDefinition(tx, digest); err != nil {
			return p, nil, err
		}
		s.adopt(all[i])
	}
	return p, newIndex().with(all...), nil
}

// planned keeps in mind what a live subagent's run is made of.
func (s *Skills) planned(tenant, agent string, x *index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive(tenant, agent) != nil {
		s.plans[agent] = x
	}
}

// indexFor is where the skills of a run are looked up: in its plan, once it
// has one.
func (s *Skills) indexFor(tenant, agent string) *index {
	s.mu.RLock()
	x := s.plans[agent]
	s.mu.RUnlock()
	if x != nil {
		return x
	}
	return s.index(tenant)
}

// pin reads what the run is made of and what of it is done, or decides it as
// the run begins.
func (r *run) pin(ctx context.Context) error {
	t := &r.job.Task
	var p pinned
	err := r.s.ledger.View(ctx, t.TenantID, func(tx *audit.Tx) (err error) {
		if p, r.x, err = r.s.readPlan(tx, t.TaskID); err != nil || r.x == nil {
			return err
		}
		return r.s.execs.Along(tx, bExecTask, t.TaskID, func(e *Execution) error {
			if !e.Interrupted && e.Status != StatusPending {
				r.finished[e.Step] = e
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if r.x == nil {
		if p, err = r.plan(ctx); err != nil {
			return err
		}
	}
	r.goal, r.newer = r.x.find(p.Skill), p.Newer
	r.s.planned(t.TenantID, r.agent, r.x)
	return nil
}

// plan decides what the run is made of, on disk before anything runs.
func (r *run) plan(ctx context.Context) (pinned, error) {
	x := r.s.index(r.by.Tenant)
	goal, _, err := x.draft(r.in)
	if err != nil {
		return pinned{}, &failure{code: "invalid_skill", message: err.Error()}
	}
	p := pinned{Skill: goal.Ref()}
	all := x.reachable(goal)
	for _, k := range all {
		p.Digests = append(p.Digests, k.Digest)
		p.Newer = p.Newer || k.UpdatedAt.After(r.job.Task.CreatedAt)
	}
	r.x = newIndex().with(all...)
	return p, r.update(ctx, func(tx *audit.Tx) error {
		for _, k := range all {
			if _, kept, err := definitions.Get(tx, record.Key(k.Digest)); err != nil || kept {
				if err != nil {
					return err
				}
				continue
			}
			if err := definitions.Put(tx, record.Key(k.Digest), k); err != nil {
				return err
			}
		}
		if _, err := tx.Record(audit.Entry{Type: "subagent.planned", Trace: r.job.Task.TraceID, Subject: "subagent", ID: r.agent, Detail: p}); err != nil {
			return err
		}
		return plans.Put(tx, ofTask(r.job.Task.TaskID), p)
	})
}

func loadDefinition(tx store.Tx, digest string) (*Skill, error) {
	k, kept, err := definitions.Get(tx, record.Key(digest))
	if err == nil && !kept {
		err = core.Missing("skill definition", digest)
	}
	return k, err
}
