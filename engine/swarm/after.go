package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// linkAfter makes a new task wait for those of its dependencies that are not
// over. One that failed already blocks it when the gate has passed.
func (s *Swarm) linkAfter(tx *audit.Tx, t *Task) error {
	for _, id := range t.After {
		var dep Task
		if err := loadTask(tx, taskSeq(id), &dep); err != nil {
			return err
		}
		if dep.Status == Succeeded {
			continue
		}
		if dep.Status.Terminal() {
			return dependencyFailed(&dep)
		}
		t.Pending++
		if err := tx.Put(bAfter, pairKey(taskSeq(id), taskSeq(t.TaskID)), nil); err != nil {
			return err
		}
	}
	return nil
}

// release lets the tasks go on that waited for one that ended; a task whose
// dependency did not succeed is blocked, and so is what waits for it in turn.
func (s *Swarm) release(tx *audit.Tx, ended *Task) error {
	queue := []*Task{ended}
	for len(queue) > 0 {
		dep := queue[0]
		queue = queue[1:]
		waiting, err := dependents(tx, taskSeq(dep.TaskID))
		if err != nil {
			return err
		}
		for _, seq := range waiting {
			var t Task
			if err := loadTask(tx, seq, &t); len(core.DamagedIn(err)) > 0 {
				s.shun(tx.Tenant(), seq, err) // it holds nobody up who can be read
				continue
			} else if err != nil {
				return err
			}
			if err := tx.Delete(bAfter, pairKey(taskSeq(dep.TaskID), seq)); err != nil {
				return err
			}
			if t.Status.Terminal() {
				continue
			}
			t.Pending--
			if dep.Status == Succeeded {
				if err := s.move(tx, &t, t.Status, "task.dependency_met", nil); err != nil {
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
			if err := s.close(tx, &t, Result{Status: Blocked, Error: blockedBy(dep)}); err != nil {
				return err
			}
			queue = append(queue, &t)
		}
	}
	return nil
}

func dependents(tx *audit.Tx, seq uint64) ([]uint64, error) {
	var out []uint64
	from, to := spanIn(tx.Alloc(8), keyIn(tx, seq))
	err := tx.Scan(bAfter, from, to, false, func(key, _ []byte) bool {
		out = append(out, seqAt(key))
		return true
	})
	return out, err
}

func blockedBy(dep *Task) *TaskError {
	return &TaskError{Code: "dependency_failed", Message: "task " + dep.TaskID + " it waits for ended " + string(dep.Status)}
}

func dependencyFailed(dep *Task) error {
	return core.Errorf(core.Conflict, "after: task %s ended %s already", dep.TaskID, dep.Status).With("field", "after")
}
