package control

import (
	"errors"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What is kept beside the intents. seq is the number in an intent's id.
const (
	desks record.Rows[desk]     = "intent.desk" // seq, while it is not over
	dues  record.Rows[struct{}] = "intent.due"  // time, seq: when which intent is to be looked at
	turns record.Rows[uint64]   = "intent.turn" // subject, turn → seq, from when it is open until it is over
	names record.Rows[known]    = "intent.key"  // by Spec.Key
)

// bOpen finds the intents that are not over, by the word open.
const bOpen store.Bucket = "intent.open"

const (
	open      = "open"
	countTurn = "intents.turns" // counter of the turns that were given out
)

func (c *Controller) intentKind() record.Table[Intent] {
	return &record.Kind[*Intent]{
		Noun: "intent", Bucket: "intent", Ledger: c.ledger, Follow: c.settled,
		ID: func(i *Intent) string { return i.IntentID }, Number: record.Numbers(core.IntentPrefix), Name: record.NumberedName(core.IntentPrefix),
		Says: "status at tries fence withdrawn approval_id",
		Indexes: []record.Index[*Intent]{{Bucket: bOpen, Count: string(bOpen), Word: func(i *Intent) string {
			if i.Status.Over() {
				return ""
			}
			return open
		}}},
	}
}

// desk is what changes without being history: when an intent is to be looked
// at, and who has it.
type desk struct {
	Due   int64  `json:"due,omitzero"` // µs; 0 is when something else happens
	Lease *Lease `json:"lease,omitzero"`
}

// dueKey is where an intent is found by when it is due.
func dueKey(due int64, seq uint64) record.Key { return record.Seq(uint64(due)).Seq(seq) }

// known is the intent that a key stands for.
type known struct {
	Seq  uint64 `json:"seq"`
	Spec string `json:"spec"` // digest of what is wanted
}

// file is an intent in hand, within one transaction.
type file struct {
	Intent
	c      *Controller
	tx     *audit.Tx
	seq    uint64
	was    *Intent // as it is stored; nil for a new one
	desk   desk
	due    int64 // as it is in dues
	events []dag.Event
	fault  error // of an event that could not be made
}

// read reads an intent as it is stored.
func (c *Controller) read(tx store.Tx, seq uint64) (*Intent, desk, error) {
	i, err := c.intents.At(tx, record.Seq(seq))
	if err == nil && i == nil {
		err = core.Missing("intent", core.NewID(core.IntentPrefix, tx.Tenant(), seq))
	}
	if err != nil {
		return nil, desk{}, err
	}
	d, _, err := desks.Get(tx, record.Seq(seq))
	return i, d, err
}

// open takes an intent in hand.
func (c *Controller) open(tx *audit.Tx, seq uint64) (*file, error) {
	i, d, err := c.read(tx, seq)
	if err != nil {
		return nil, err
	}
	f := &file{Intent: *i, c: c, tx: tx, seq: seq, was: i, desk: d, due: d.Due}
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

// look says when the intent is to be looked at: zero is when something else
// happens to it.
func (f *file) look(at time.Time) {
	f.desk.Due = 0
	if !at.IsZero() {
		f.desk.Due = at.UnixMicro()
	}
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
	return f.putDesk()
}

// putDesk writes what is no history.
func (f *file) putDesk() error {
	if f.due != 0 && (f.due != f.desk.Due || f.Status.Over()) {
		if err := dues.Delete(f.tx, dueKey(f.due, f.seq)); err != nil {
			return err
		}
	}
	if f.Status.Over() {
		return desks.Delete(f.tx, record.Seq(f.seq))
	}
	if due := f.desk.Due; due != 0 {
		if err := dues.Put(f.tx, dueKey(due, f.seq), struct{}{}); err != nil {
			return err
		}
		f.tx.OnCommit(func() { f.c.loop.Due(f.TenantID, time.UnixMicro(due)) })
	}
	f.due = f.desk.Due
	return desks.Put(f.tx, record.Seq(f.seq), f.desk)
}

// line puts the intent in line behind the others of its subject.
func (f *file) line() error {
	if f.Subject == "" || f.Turn > 0 {
		return nil
	}
	f.Turn = uint64(f.tx.Add(countTurn, 1))
	return turns.Put(f.tx, record.Text(f.Subject).Seq(f.Turn), f.seq)
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
	if err != nil || next == 0 {
		return err
	}
	return f.c.poke(f.tx, next)
}

// first finds whose turn it is with a subject; 0 is nobody's.
func first(tx store.Tx, subject string) (seq uint64, err error) {
	err = turns.Each(tx, record.Text(subject), func(_ record.Parts, whose uint64) (bool, error) {
		seq = whose
		return false, nil
	})
	return seq, err
}

// close ends the intent.
func (f *file) close(status Status, event string, detail any) error {
	f.Status, f.EndedAt = status, f.tx.Now()
	exit := "error"
	if status == Done {
		exit, f.Why = "success", ""
	}
	f.emit(&dag.RunFinished{Exit: exit})
	f.desk = desk{}
	if err := f.leave(); err != nil {
		return err
	}
	return f.save(event, detail)
}

// poke has an intent looked at now, whoever holds it.
func (c *Controller) poke(tx *audit.Tx, seq uint64) error {
	f, err := c.open(tx, seq)
	if err != nil {
		return err
	}
	f.look(tx.Now())
	return f.putDesk()
}

// settled wakes, after the commit, who waits for an intent that is over.
func (c *Controller) settled(tenant, id string, i *Intent) {
	if !i.Status.Over() && i.Status != Stuck {
		return
	}
	c.opt.Health.Clear(tenant, "intents", id)
	at := place{tenant, id}
	c.mu.Lock()
	all := c.waiters[at]
	delete(c.waiters, at)
	c.mu.Unlock()
	for _, done := range all {
		close(done)
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
