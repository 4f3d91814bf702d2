package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/store"
)

// Buckets of a tenant. Numbers are big-endian; seq is the number in an
// intent's id.
const (
	bIntent store.Bucket = "intent"      // seq → Intent
	bDesk   store.Bucket = "intent.desk" // seq → desk, while it is not over
	bDue    store.Bucket = "intent.due"  // µs, seq → nothing: when which intent is to be looked at
	bTurn   store.Bucket = "intent.turn" // subject, 0, turn → seq, from when it is open until it is over
	bKey    store.Bucket = "intent.key"  // key → seq, digest of the spec
)

// Counters of a tenant.
const (
	countAll  = "intents"
	countOpen = "intents.open"
	countTurn = "intents.turns"
)

// subject names intents in the audit log.
const subject = "intent"

// desk is what changes without being history: when an intent is to be looked
// at, and who has it.
type desk struct {
	Due   int64  `json:"due,omitzero"` // µs; 0 is when something else happens
	Lease *Lease `json:"lease,omitzero"`
}

// file is an intent in hand, within one transaction.
type file struct {
	Intent
	c      *Controller
	tx     *audit.Tx
	seq    uint64
	desk   desk
	due    int64 // as it is in bDue
	events []dag.Event
	fault  error // of an event that could not be made
}

func key(nums ...uint64) []byte {
	b := make([]byte, 0, 8*len(nums))
	for _, n := range nums {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func turnKey(subject string, turn uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(subject), 0), turn)
}

// read reads an intent as it is stored.
func read(tx store.Tx, seq uint64) (i Intent, d desk, err error) {
	for _, part := range []struct {
		bucket store.Bucket
		into   any
	}{{bIntent, &i}, {bDesk, &d}} {
		data, err := tx.Get(part.bucket, key(seq))
		if err == nil && data != nil {
			err = core.DecodeStored(data, part.into)
		}
		if err != nil {
			return i, d, fmt.Errorf("read intent %d: %w", seq, err)
		}
	}
	if i.IntentID == "" {
		return i, d, core.Missing("intent", core.NewID(core.IntentPrefix, tx.Tenant(), seq))
	}
	return i, d, nil
}

// open takes an intent in hand.
func (c *Controller) open(tx *audit.Tx, seq uint64) (*file, error) {
	i, d, err := read(tx, seq)
	if err != nil {
		return nil, err
	}
	return &file{Intent: i, c: c, tx: tx, seq: seq, desk: d, due: d.Due}, nil
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
	f.UpdatedAt = f.tx.Now()
	seq, err := f.tx.Record(audit.Entry{
		Type: "intent." + event, Trace: f.TraceID, Subject: subject, ID: f.IntentID, State: f.state(), Prev: f.AuditSeq, Detail: detail,
	})
	if err != nil {
		return err
	}
	f.AuditSeq = seq
	data, err := core.Encode(&f.Intent)
	if err != nil {
		return fmt.Errorf("encode intent %s: %w", f.IntentID, err)
	}
	if err := f.tx.Put(bIntent, key(f.seq), data); err != nil {
		return err
	}
	if err := f.putDesk(); err != nil {
		return err
	}
	f.tx.Changed("intent", f.IntentID, nil)
	at, settled := place{f.tx.Tenant(), f.IntentID}, f.Status.Over() || f.Status == Stuck
	due := f.desk.Due
	f.tx.OnCommit(func() { f.c.changed(at, due, settled) })
	return nil
}

// putDesk writes what is no history.
func (f *file) putDesk() error {
	if f.due != 0 && (f.due != f.desk.Due || f.Status.Over()) {
		if err := f.tx.Delete(bDue, key(uint64(f.due), f.seq)); err != nil {
			return err
		}
	}
	if f.Status.Over() {
		return f.tx.Delete(bDesk, key(f.seq))
	}
	if f.desk.Due != 0 && f.desk.Due != f.due {
		if err := f.tx.Put(bDue, key(uint64(f.desk.Due), f.seq), []byte{}); err != nil {
			return err
		}
	}
	f.due = f.desk.Due
	data, err := core.Encode(f.desk)
	if err != nil {
		return fmt.Errorf("encode the lease of %s: %w", f.IntentID, err)
	}
	return f.tx.Put(bDesk, key(f.seq), data)
}

// line puts the intent in line behind the others of its subject.
func (f *file) line() error {
	if f.Subject == "" || f.Turn > 0 {
		return nil
	}
	f.Turn = uint64(f.tx.Add(countTurn, 1))
	return f.tx.Put(bTurn, turnKey(f.Subject, f.Turn), key(f.seq))
}

// leave takes it out of the line, and gives the next one its turn.
func (f *file) leave() error {
	if f.Turn == 0 {
		return nil
	}
	if err := f.tx.Delete(bTurn, turnKey(f.Subject, f.Turn)); err != nil {
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
	err = tx.Scan(bTurn, turnKey(subject, 0), turnKey(subject, ^uint64(0)), false, func(_, v []byte) bool {
		seq = binary.BigEndian.Uint64(v)
		return false
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
	f.tx.Add(countOpen, -1)
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
	tx.OnCommit(func() { c.loop.Due(tx.Tenant(), time.UnixMicro(f.desk.Due)) })
	return f.putDesk()
}

// changed runs after the commit that changed an intent.
func (c *Controller) changed(at place, due int64, settled bool) {
	if due != 0 {
		c.loop.Due(at.tenant, time.UnixMicro(due))
	}
	if !settled {
		return
	}
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

type audited struct{}

func (audited) Subject() string { return subject }

func (audited) States(tx store.Tx, each func(string, any) error) error {
	var bad error
	err := tx.Scan(bIntent, nil, nil, false, func(_, value []byte) bool {
		i := &Intent{}
		if core.DecodeStored(value, i) == nil { // else the digest differs
			bad = each(i.IntentID, i.state())
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}
