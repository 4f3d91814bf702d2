package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// linkAfter makes a new task wait for those of its dependencies that are not
// over. One that failed already blocks it when the gate has passed.
func (s *Swarm) linkAfter(tx *audit.Tx, t *task.Task) error {
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
func (s *Swarm) release(tx *audit.Tx, ended *task.Task) error {
	queue := []*task.Task{ended}
	for len(queue) > 0 {
		dep := queue[0]
		queue = queue[1:]
		waiting, err := s.tasks.Dependents(tx, task.Seq(dep.TaskID))
		if err != nil {
			return err
		}
		for _, seq := range waiting {
			var t task.Task
			if err := s.tasks.Load(tx, seq, &t); len(core.DamagedIn(err)) > 0 {
				s.shun(tx.Tenant(), seq, err) // it holds nobody up who can be read
				continue
			} else if err != nil {
				return err
			}
			if err := s.tasks.DropAfter(tx, dep.Seq(), seq); err != nil {
				return err
			}
			if t.Status.Terminal() {
				continue
			}
			t.Pending--
			if dep.Status == task.Succeeded {
				if err := s.tasks.Move(tx, &t, t.Status, "task.dependency_met", nil); err != nil {
					return err
				}
				if err := s.enqueue(tx, &t); err != nil {
					return err
				}
				continue
			}
			if err := s.voidGates(tx, &t, "a task it waits for did not succeed"); err != nil {
				return err
			}
			if err := s.close(tx, &t, task.Result{Status: task.Blocked, Error: blockedBy(dep)}, nil); err != nil {
				return err
			}
			queue = append(queue, &t)
		}
	}
	return nil
}

func blockedBy(dep *task.Task) *task.Error {
	return &task.Error{Code: "dependency_failed", Message: "task " + dep.TaskID + " it waits for ended " + string(dep.Status)}
}

func dependencyFailed(dep *task.Task) error {
	return core.Errorf(core.Conflict, "after: task %s ended %s already", dep.TaskID, dep.Status).With("field", "after")
}
