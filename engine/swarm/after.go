package swarm

import (
	"context"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// linkAfter makes a new task wait for those of its dependencies that are not
// over. One that failed already blocks it when the gate has passed.
func (s *shared) linkAfter(tx *audit.Tx, t *task.Task) error {
	for _, id := range t.After {
		var dep task.Task
		if err := s.tasks.Load(tx, task.Seq(id), &dep); err != nil {
			return err
		}
		if dep.Status == task.Succeeded {
			continue
		}
		if dep.Status.Terminal() {
			return dependencyFailed(&dep)
		}
		t.Pending++
		if err := s.tasks.PutAfter(tx, task.Seq(id), t.Seq()); err != nil {
			return err
		}
	}
	return nil
}

// release lets the tasks go on that waited for one that ended; a task whose
// dependency did not succeed is blocked, and so is what waits for it in turn.
// Where they are many, the scheduler goes on with the rest.
func (s *ending) release(tx *audit.Tx, ended *task.Task) error { return s.releaseFrom(tx, ended, 0) }

// releaseFrom is release for those that wait from a number on.
func (s *ending) releaseFrom(tx *audit.Tx, ended *task.Task, from uint64) error {
	left := changeBatch
	tenant := tx.Tenant()
	for queue := []*task.Task{ended}; len(queue) > 0; queue, from = queue[1:], 0 {
		dep := queue[0]
		waiting, err := s.tasks.Dependents(tx, dep.Seq(), from, left+1)
		if err != nil {
			return err
		}
		for _, seq := range waiting {
			if left--; left < 0 {
				tx.OnCommit(func() { s.releaseLater(tenant, dep.Seq(), seq) })
				break
			}
			gone, err := s.releaseOne(tx, dep, seq)
			if err != nil {
				return err
			}
			if gone != nil {
				queue = append(queue, gone)
			}
		}
		left = max(left, 0)
	}
	return nil
}

// releaseOne lets a task go on that waited for dep. It returns the task when
// that is blocked: others may wait for it.
func (s *ending) releaseOne(tx *audit.Tx, dep *task.Task, seq uint64) (blocked *task.Task, err error) {
	var t task.Task
	if err := s.tasks.Load(tx, seq, &t); len(core.DamagedIn(err)) > 0 {
		s.quarantine(tx.Tenant(), seq, err) // it holds nobody up who can be read
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := s.tasks.DropAfter(tx, dep.Seq(), seq); err != nil || t.Status.Terminal() {
		return nil, err
	}
	t.Pending--
	if dep.Status == task.Succeeded {
		if err := s.tasks.Move(tx, &t, t.Status, "task.dependency_met", nil); err != nil {
			return nil, err
		}
		return nil, s.enqueue(tx, &t)
	}
	if err := s.voidGates(tx, &t, "a task it waits for did not succeed"); err != nil {
		return nil, err
	}
	why := &task.Error{Code: "dependency_failed", Message: "task " + dep.TaskID + " it waits for ended " + string(dep.Status)}
	return &t, s.close(tx, &t, task.Result{Status: task.Blocked, Error: why}, nil)
}

// releaseLater has the scheduler let those go on that wait for a task, from a
// number on.
func (s *ending) releaseLater(tenant string, dep, from uint64) {
	s.mu.Lock()
	if s.releasing[tenant] == nil {
		s.releasing[tenant] = map[uint64]uint64{}
	}
	s.releasing[tenant][dep] = from
	s.mu.Unlock()
	s.ring()
}

// releaseRest lets a batch of those go on that were left.
func (s *ending) releaseRest(ctx context.Context, tenant string) error {
	s.mu.Lock()
	todo := s.releasing[tenant]
	delete(s.releasing, tenant)
	s.mu.Unlock()
	for dep, from := range todo {
		err := s.ledger.Update(ctx, core.Self(tenant, "scheduler"), func(tx *audit.Tx) error {
			var t task.Task
			if err := s.tasks.Load(tx, dep, &t); err != nil {
				return err
			}
			return s.releaseFrom(tx, &t, from)
		})
		if err != nil {
			s.releaseLater(tenant, dep, from)
			return fmt.Errorf("let go on what waited for task number %d: %w", dep, err)
		}
	}
	return nil
}

func dependencyFailed(dep *task.Task) error {
	return core.Errorf(core.Conflict, "after: task %s ended %s already", dep.TaskID, dep.Status).With("field", "after")
}
