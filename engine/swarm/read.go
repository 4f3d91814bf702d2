package swarm

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/secret"
)

// header reads a task without its input.
func (s *Swarm) header(ctx context.Context, by core.Caller, id string) (Task, error) {
	seq, err := s.local(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return Task{}, err
	}
	if t, ok := s.heads.committed(by.Tenant, seq); ok {
		return t, nil
	}
	var t Task
	err = s.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error { return loadTask(tx, seq, &t) })
	return t, err
}

// StatusIn is a task's status inside a transaction.
func (s *Swarm) StatusIn(tx *audit.Tx, id string) (Status, error) {
	var t Task
	err := s.heads.load(tx, taskSeq(id), &t)
	return t.Status, err
}

func (s *Swarm) task(ctx context.Context, by core.Caller, id string) (Task, error) {
	seq, err := s.local(ctx, by, core.TaskPrefix, id)
	if err != nil {
		return Task{}, err
	}
	var t Task
	err = s.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		if err := loadTask(tx, seq, &t); err != nil {
			return err
		}
		input, err := tx.Get(bInput, key8(seq))
		t.Input = append(core.Raw(nil), input...)
		return err
	})
	return t, err
}

// Task returns one task with its input.
func (s *Swarm) Task(ctx context.Context, tenant, id string) (Task, error) {
	t, err := s.task(ctx, core.Self(tenant, "reader"), id)
	if t.Kind == judge.KindExec {
		t.Input = secret.ShownInput(t.Input)
	}
	return t, err
}

// Result returns the result of a task that is over.
func (s *Swarm) Result(ctx context.Context, tenant, id string) (Result, error) {
	seq, err := s.local(ctx, core.Self(tenant, "reader"), core.TaskPrefix, id)
	if err != nil {
		return Result{}, err
	}
	var r Result
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return load(tx, bResult, key8(seq), "result of task", id, &r)
	})
	return r, err
}

// maxTree bounds a tree.
const maxTree = 1000

// Tree returns a task and all its descendants, parents first, at most 1000.
func (s *Swarm) Tree(ctx context.Context, tenant, id string) ([]Task, error) {
	seq, err := s.local(ctx, core.Self(tenant, "reader"), core.TaskPrefix, id)
	if err != nil {
		return nil, err
	}
	var out []Task
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		todo := []uint64{seq}
		for len(todo) > 0 && len(out) < maxTree {
			var t Task
			if err := loadTask(tx, todo[0], &t); err != nil {
				return err
			}
			out = append(out, t)
			from, to := span(key8(todo[0]))
			todo = todo[1:]
			var kids []uint64
			if err := tx.Scan(bChild, from, to, false, func(key, _ []byte) bool {
				kids = append(kids, seqAt(key))
				return len(kids) < maxTree
			}); err != nil {
				return err
			}
			todo = append(kids, todo...)
		}
		return nil
	})
	return out, err
}
