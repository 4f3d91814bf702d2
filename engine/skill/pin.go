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
	Skill   string   `json:"skill"`   // name@version of what was asked for
	Digests []string `json:"digests"` // of all it may need
}

// pin reads what the run is made of, or decides it as the run begins.
func (r *run) pin(ctx context.Context) error {
	key := numberKey(taskNumber(r.job.Task.TaskID))
	var p pinned
	var all []*Skill
	err := r.s.ledger.View(ctx, r.by.Tenant, func(tx *audit.Tx) error {
		data, err := tx.Get(bPlan, key)
		if err != nil || data == nil {
			return err
		}
		if err := core.DecodeStored(data, &p); err != nil {
			return fmt.Errorf("decode the plan of task %s: %w", r.job.Task.TaskID, err)
		}
		for _, digest := range p.Digests {
			k, err := loadDefinition(tx, digest)
			if err != nil {
				return err
			}
			all = append(all, k)
		}
		from, to := numberSpan(taskNumber(r.job.Task.TaskID))
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
	if p.Skill == "" {
		x := r.s.index(r.by.Tenant)
		goal, _, err := x.draft(r.in)
		if err != nil {
			return &failure{code: "invalid_skill", message: err.Error()}
		}
		all = x.reachable(goal)
		p.Skill = goal.Ref()
		for _, k := range all {
			p.Digests = append(p.Digests, k.Digest)
		}
		if err := r.keepPlan(ctx, key, p, all); err != nil {
			return err
		}
	} else {
		for _, k := range all {
			r.s.adopt(k)
		}
	}
	r.x = newIndex().with(all...)
	r.goal = r.x.find(p.Skill)
	for _, k := range all {
		r.changed = r.changed || k.UpdatedAt.After(r.job.Task.CreatedAt)
	}
	return nil
}

func (r *run) keepPlan(ctx context.Context, key []byte, p pinned, all []*Skill) error {
	return r.update(ctx, func(tx *audit.Tx) error {
		for _, k := range all {
			old, err := tx.Get(bDefinition, []byte(k.Digest))
			if err != nil {
				return err
			}
			if old != nil {
				continue
			}
			data, err := core.Encode(k)
			if err != nil {
				return fmt.Errorf("encode skill %s: %w", k.Ref(), err)
			}
			if err := tx.Put(bDefinition, []byte(k.Digest), data); err != nil {
				return err
			}
		}
		if _, err := tx.Record(audit.Entry{Type: "subagent.planned", Trace: r.job.Task.TraceID, Subject: "subagent", ID: r.agent, Detail: p}); err != nil {
			return err
		}
		return tx.Put(bPlan, key, core.MustEncode(p))
	})
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
