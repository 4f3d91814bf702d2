package swarm

import (
	"swarmdeck/engine/audit"
	"swarmdeck/engine/task"
)

// Holds reports, in a transaction, whether an attempt still holds its task:
// what one does that has lost it must leave no trace.
func (s *shared) Holds(tx *audit.Tx, t *task.Task) (bool, error) {
	now, err := s.tasks.In(tx, t.TaskID)
	return now.Status == task.Running && now.Lease == t.Lease, err
}
