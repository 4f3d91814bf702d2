package swarm

import "swarmdeck/engine/audit"

// Follower is implemented by runners that keep a record of their own beside
// each task of their kind.
type Follower interface {
	// Moved brings that record to where the task now is, in the transaction
	// that moved it, so that the two never disagree. from is the status
	// before, "" for a new task: only that may be refused. The result of a
	// task that is over can be read already (ResultIn). It must not call the
	// swarm's other methods or the ledger, nor read the task, whose header is
	// still the old one. t's input is there while it starts.
	Moved(tx *audit.Tx, t *Task, from Status) error
}

// follow tells the runner of a task what became of it.
func (s *Swarm) follow(tx *audit.Tx, t *Task, from Status) error {
	f, ok := s.runs(t.Kind).(Follower)
	if !ok {
		return nil
	}
	return f.Moved(tx, t, from)
}

// Leaver is implemented by who keeps rows of his own beside tasks.
type Leaver interface {
	// TaskLeaves removes what is kept of a finished task that leaves by retention, in
	// the transaction that removes it.
	TaskLeaves(tx *audit.Tx, t *Task) error
}

// Leaver adds one. Call it before Run.
func (s *Swarm) Leaver(l Leaver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leavers = append(s.leavers, l)
}

// leaves tells those who keep rows beside a task that it leaves.
func (s *Swarm) leaves(tx *audit.Tx, t *Task) error {
	s.mu.Lock()
	all := s.leavers
	s.mu.Unlock()
	for _, l := range all {
		if err := l.TaskLeaves(tx, t); err != nil {
			return err
		}
	}
	return nil
}

// TaskIn reads a task, in a transaction, as it was before that.
func (s *Swarm) TaskIn(tx *audit.Tx, id string) (Task, error) {
	var t Task
	err := s.heads.load(tx, taskSeq(id), &t)
	return t, err
}

// ResultIn reads the result of a task that is over.
func (s *Swarm) ResultIn(tx *audit.Tx, id string) (Result, error) {
	var r Result
	err := load(tx, bResult, key8(taskSeq(id)), "result of task", id, &r)
	return r, err
}

// Holds reports, in a transaction, whether an attempt still holds its task:
// what one does that has lost it must leave no trace.
func (s *Swarm) Holds(tx *audit.Tx, t *Task) (bool, error) {
	now, err := s.TaskIn(tx, t.TaskID)
	return now.Status == Running && now.Lease == t.Lease, err
}
