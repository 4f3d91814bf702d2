package cad

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of a tenant. A number is 8 bytes, big-endian; no name holds a zero
// byte.
const (
	bController store.Bucket = "cad.controller" // controllerKey → settings
	bAgent      store.Bucket = "cad.agent"      // id → Agent
	bFigures    store.Bucket = "cad.figures"    // agent id → figures
	bMark       store.Bucket = "cad.mark"       // mark → marked
	bWorkspace  store.Bucket = "cad.workspace"  // id → Workspace
	bEntry      store.Bucket = "cad.entry"      // workspace, 0, seq → entry
	bEntity     store.Bucket = "cad.entity"     // workspace, 0, entity id → model.Entity
	bOpen       store.Bucket = "cad.open"       // workspace → conflicts that are open
	bOpened     store.Bucket = "cad.opened"     // workspace, 0, seq → open conflicts before and after the entry
	bShape      store.Bucket = "cad.shape"      // hash → model.Shape
	bBlob       store.Bucket = "cad.blob"       // hash → content of a file
	bMessage    store.Bucket = "cad.message"    // seq of the bus → AgentMessage
	bInbox      store.Bucket = "cad.inbox"      // agent id, 0, seq of the bus → when it was read, nothing before
	bUnread     store.Bucket = "cad.unread"     // agent id, 0, seq of the bus, of those not read
)

const controllerKey = "controller"

func under(name string) (from, to []byte) {
	return append([]byte(name), 0), append([]byte(name), 1)
}

func numbered(name string, n uint64) []byte {
	b := make([]byte, 0, len(name)+9)
	return binary.BigEndian.AppendUint64(append(append(b, name...), 0), n)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func named(name, second string) []byte {
	b := make([]byte, 0, len(name)+1+len(second))
	return append(append(append(b, name...), 0), second...)
}

// numberAt is the number that a key ends in.
func numberAt(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// fetch reads a record; false when there is none.
func fetch(tx store.Tx, b store.Bucket, key []byte, v any) (bool, error) {
	data, err := tx.Get(b, key)
	if err != nil || data == nil {
		return false, err
	}
	if err := core.DecodeStored(bytes.Clone(data), v); err != nil {
		return false, fmt.Errorf("decode %s %q: %w", b, key, err)
	}
	return true, nil
}

func put(tx store.Tx, b store.Bucket, key []byte, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode %s %q: %w", b, key, err)
	}
	return tx.Put(b, key, data)
}

// each calls fn for the records under a name, or for all with nil, in order.
func each[T any](tx store.Tx, b store.Bucket, under func() (from, to []byte), fn func(*T)) error {
	var from, to []byte
	if under != nil {
		from, to = under()
	}
	var bad []error
	err := tx.Scan(b, from, to, false, func(key, value []byte) bool {
		v := new(T)
		if err := core.DecodeStored(bytes.Clone(value), v); err != nil {
			bad = append(bad, &core.Damaged{Noun: string(b), Key: string(key), Err: err})
			return true
		}
		fn(v)
		return true
	})
	return errors.Join(append(bad, err)...)
}

// loadAgent reads an agent that must be there.
func loadAgent(tx store.Tx, id string) (*Agent, error) {
	a := new(Agent)
	there, err := fetch(tx, bAgent, []byte(id), a)
	if err == nil && !there {
		err = core.Missing("agent_id", id)
	}
	return a, err
}

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

// note is what a change says about itself in the audit log.
type note struct {
	event, trace string
	detail       any
}

// saveAgent writes an agent with its audit event. It is the only way an agent
// changes.
func (c *Controller) saveAgent(tx *audit.Tx, a *Agent, n note) error {
	seq, err := tx.Record(audit.Entry{
		Type: n.event, Trace: n.trace, Subject: "cad.agent", ID: a.AgentID, State: a.audited(), Detail: n.detail, Prev: a.AuditSeq,
	})
	if err != nil {
		return err
	}
	a.AuditSeq = seq
	if err := put(tx, bAgent, []byte(a.AgentID), a); err != nil {
		return err
	}
	kept := *a
	tx.OnCommit(func() { c.savedAgent(&kept) })
	tx.Changed("cad.agent", a.AgentID, &kept)
	return nil
}

// savedAgent runs in commit order.
func (c *Controller) savedAgent(a *Agent) {
	t := c.of(a.TenantID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := t.members[a.AgentID]; m != nil {
		m.rec.Store(a)
	} else {
		t.members[a.AgentID] = newMember(a)
	}
}

// saveWorkspace writes a workspace with its audit event. It is the only way a
// workspace's record changes.
func (c *Controller) saveWorkspace(tx *audit.Tx, w *Workspace, n note) error {
	w.UpdatedAt = seconds(tx.Now())
	seq, err := tx.Record(audit.Entry{
		Type: n.event, Trace: n.trace, Subject: "cad.workspace", ID: w.WorkspaceID, State: w.audited(), Detail: n.detail, Prev: w.AuditSeq,
	})
	if err != nil {
		return err
	}
	w.AuditSeq = seq
	if err := put(tx, bWorkspace, []byte(w.WorkspaceID), w); err != nil {
		return err
	}
	kept := *w
	tx.OnCommit(func() {
		t := c.of(kept.TenantID)
		c.mu.Lock()
		defer c.mu.Unlock()
		t.spaces[kept.WorkspaceID] = &kept
	})
	tx.Changed("cad.workspace", w.WorkspaceID, &kept)
	return nil
}
