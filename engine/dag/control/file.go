package control

import (
	"errors"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// turns are kept beside the intents: subject, turn → id, from when it is open until
// it is over.
const turns record.Rows[string] = "intent.turn"

// bOpen finds the intents that are not over, by the word open.
const bOpen store.Bucket = "intent.open"

const (
	open      = "open"
	countTurn = "intents.turns" // counter of the turns that were given out
)

func (c *Controller) intentKind() record.Table[Intent] {
	return &record.Kind[*Intent]{
		Noun: "intent", Bucket: "intent", Ledger: c.ledger, Follow: c.follow,
		ID: func(i *Intent) string { return i.IntentID }, Number: record.Numbers(core.IntentPrefix), Name: record.NumberedName(core.IntentPrefix),
		Says: "status at tries withdrawn approval_id",
		Indexes: []record.Index[*Intent]{{Bucket: bOpen, Count: string(bOpen), Word: func(i *Intent) string {
			if i.Status.Over() {
				return ""
			}
			return open
		}}},
	}
}

// file is an intent in hand, within one transaction.
type file struct {
	Intent
	c      *Controller
	tx     *audit.Tx
	was    *Intent // as it is stored; nil for a new one
	events []dag.Event
	fault  error // of an event that could not be made
}

// open takes an intent in hand.
func (c *Controller) open(tx *audit.Tx, id string) (*file, error) {
	i, err := c.intents.Need(tx, id)
	if err != nil {
		return nil, err
	}
	f := &file{Intent: *i, c: c, tx: tx, was: i}
	f.Steps = slices.Clone(i.Steps)
	return f, nil
}

// emit states an event of the intent's run; save records it.
func (f *file) emit(body dag.Body) dag.EventRef {
	e, err := dag.NewEvent(dag.Head{
		TS: dag.At(f.tx.Now()), RunID: f.IntentID, AgentID: f.AgentID, TaskID: f.TaskID, SessionID: f.SessionID, TraceID: f.TraceID,
	}, body)
	if err != nil {
		f.fault = errors.Join(f.fault, err)
		return dag.EventRef{}
	}
	f.events = append(f.events, e)
	return dag.EventRef{EventID: e.EventID}
}

// save writes the intent, its events and its audit event.
func (f *file) save(event string, detail any) error {
	if f.fault != nil {
		return f.fault
	}
	if _, err := f.c.dag.EmitIn(f.tx, f.events...); err != nil {
		return err
	}
	f.events = nil
	if err := f.c.intents.Save(f.tx, record.Event{Type: "intent." + event, Trace: f.TraceID, Detail: detail}, f.was, &f.Intent); err != nil {
		return err
	}
	kept := f.Intent // what follows the commit has it: its steps are not changed any more
	f.was, f.Steps = &kept, slices.Clone(f.Steps)
	return nil
}

// wake has the work on an intent go on once this is committed.
func (f *file) wake(id string) {
	at := place{f.TenantID, id}
	f.tx.OnCommit(func() { f.c.wake(at) })
}

// line puts the intent in line behind the others of its subject.
func (f *file) line() error {
	if f.Subject == "" || f.Turn > 0 {
		return nil
	}
	f.Turn = uint64(f.tx.Add(countTurn, 1))
	return turns.Put(f.tx, record.Text(f.Subject).Seq(f.Turn), f.IntentID)
}

// leave takes it out of the line, and gives the next one its turn.
func (f *file) leave() error {
	if f.Turn == 0 {
		return nil
	}
	if err := turns.Delete(f.tx, record.Text(f.Subject).Seq(f.Turn)); err != nil {
		return err
	}
	f.Turn = 0
	next, err := first(f.tx, f.Subject)
	if err == nil && next != "" {
		f.wake(next)
	}
	return err
}

// first finds whose turn it is with a subject; "" is nobody's.
func first(tx store.Tx, subject string) (id string, err error) {
	err = turns.Each(tx, record.Text(subject), func(_ record.Parts, whose string) (bool, error) {
		id = whose
		return false, nil
	})
	return id, err
}

// close ends the intent.
func (f *file) close(status Status, event string, detail any) error {
	f.Status, f.EndedAt = status, f.tx.Now()
	exit := "error"
	if status == Done {
		exit, f.Why = "success", ""
	}
	f.emit(&dag.RunFinished{Exit: exit})
	if err := f.leave(); err != nil {
		return err
	}
	return f.save(event, detail)
}

// follow wakes, after the commit, who waits for an intent that is over.
func (c *Controller) follow(tenant, id string, i *Intent) {
	if i.Status.Over() || i.Status == Stuck {
		c.opt.Health.Clear(tenant, "intents", id)
		c.settled.Change(func() {})
	}
}

// stepsLeft are the steps that may have left something in the world, the last
// one first.
func (i *Intent) stepsLeft() (all []int) {
	for n := range slices.Backward(i.Steps) {
		if i.Steps[n].Status.touched() {
			all = append(all, n+1)
		}
	}
	return all
}
