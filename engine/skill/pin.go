package skill

import (
	"bytes"
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of what runs are made of.
const (
	bPlan       store.Bucket = "skill.plan"       // task number → pinned
	bDefinition store.Bucket = "skill.definition" // digest → Skill, as it was pinned first
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
	data, err := tx.Get(bPlan, numberKey(taskNumber(task)))
	if err != nil || data == nil {
		return p, nil, err
	}
	if err := core.DecodeStored(data, &p); err != nil {
		return p, nil, fmt.Errorf("decode the plan of task %s: %w", task, err)
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
	if s.live[tenant][agent] != nil {
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
		from, to := numberSpan(taskNumber(t.TaskID))
		return executions().along(tx, bExecTask, from, to, func(e *Execution) error {
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
			if err := keepDefinition(tx, k); err != nil {
				return err
			}
		}
		if _, err := tx.Record(audit.Entry{Type: "subagent.planned", Trace: r.job.Task.TraceID, Subject: "subagent", ID: r.agent, Detail: p}); err != nil {
			return err
		}
		return tx.Put(bPlan, numberKey(taskNumber(r.job.Task.TaskID)), core.MustEncode(p))
	})
}

// keepDefinition writes a definition unless an earlier run has.
func keepDefinition(tx *audit.Tx, k *Skill) error {
	old, err := tx.Get(bDefinition, []byte(k.Digest))
	if err != nil || old != nil {
		return err
	}
	data, err := core.Encode(k)
	if err != nil {
		return fmt.Errorf("encode skill %s: %w", k.Ref(), err)
	}
	return tx.Put(bDefinition, []byte(k.Digest), data)
}

func loadDefinition(tx store.Tx, digest string) (*Skill, error) {
	data, err := tx.Get(bDefinition, []byte(digest))
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, core.Missing("skill definition", digest)
	}
	k := new(Skill)
	if err := core.DecodeStored(bytes.Clone(data), k); err != nil {
		return nil, fmt.Errorf("decode skill definition %s: %w", digest, err)
	}
	return k, nil
}
