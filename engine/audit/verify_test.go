package audit_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const (
	treeBucket store.Bucket = "audit_tree"
	headBucket store.Bucket = "audit_head"
)

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func readEvent(tx store.Tx, seq uint64) []byte {
	data, _ := tx.Get(audit.Events, seqKey(seq))
	return bytes.Clone(data)
}

// replaceTree changes the last value of the tree.
func replaceTree(tx store.Tx, change func([]byte)) error {
	var k, v []byte
	err := tx.Scan(treeBucket, nil, nil, true, func(key, value []byte) (bool, error) {
		k, v = bytes.Clone(key), bytes.Clone(value)
		return false, nil
	})
	if err != nil {
		return err
	}
	change(v)
	return tx.Put(treeBucket, k, v)
}

// edit replaces old by new in an event.
func edit(seq uint64, old, changed string) func(store.Tx) error {
	return func(tx store.Tx) error {
		data := readEvent(tx, seq)
		if !bytes.Contains(data, []byte(old)) {
			return fmt.Errorf("event %d has no %q: %s", seq, old, data)
		}
		return tx.Put(audit.Events, seqKey(seq), bytes.Replace(data, []byte(old), []byte(changed), 1))
	}
}

func TestVerifyFindsEveryTampering(t *testing.T) {
	id := func(seq uint64) string { return core.NewID(core.EventPrefix, acme, seq) }
	// The house has 14 events: seq 2 is the key, the rest are task.queued.
	for _, c := range []struct {
		name string
		do   func(store.Tx) error
		want []string // each is in one problem, and there are no others
	}{
		{"nothing", func(store.Tx) error { return nil }, nil},
		{"trace changed", edit(5, trace, strings.Repeat("1b", 16)), []string{"event seq 5 (" + id(5) + "): was changed"}},
		{"type changed", edit(5, "task.queued", "task.failed"), []string{"event seq 5 (" + id(5) + "): was changed"}},
		{"actor changed", edit(5, "alice", "malet"), []string{"event seq 5 (" + id(5) + "): was changed"}},
		{"door changed", edit(5, `"cli"`, `"mcp"`), []string{"event seq 5 (" + id(5) + "): was changed"}},
		{"state changed", edit(14, `{"status":"queued"}`, `{"status":"failed"}`), []string{"event seq 14 (" + id(14) + "): was changed"}},
		{"blank added", edit(1, `{"status":`, `{"status": `), []string{"event seq 1 (" + id(1) + "): was changed"}},
		{"seq changed", edit(5, `"seq":5`, `"seq":6`), []string{"seq 5 (" + id(5) + "): was changed", "says it is seq 6"}},
		{"tenant changed", edit(5, acme, "t_evil"), []string{"event seq 5 (" + id(5) + "): was changed", "of t_evil"}},
		{"not json", edit(5, `{"tenant_id"`, `["tenant_id"`), []string{"was changed", "can't be read"}},
		{"two changed", func(tx store.Tx) error {
			if err := edit(3, "alice", "mallo")(tx); err != nil {
				return err
			}
			return edit(9, "alice", "mallo")(tx)
		}, []string{"event seq 3 (" + id(3) + "): was changed", "event seq 9 (" + id(9) + "): was changed"}},
		{"reordered", func(tx store.Tx) error {
			a, b := readEvent(tx, 6), readEvent(tx, 7)
			if err := tx.Put(audit.Events, seqKey(6), b); err != nil {
				return err
			}
			return tx.Put(audit.Events, seqKey(7), a)
		}, []string{"seq 6 (" + id(6) + "): was changed", "says it is seq 7", "seq 7 (" + id(7) + "): was changed", "says it is seq 6"}},
		{"one removed", func(tx store.Tx) error { return tx.Delete(audit.Events, seqKey(4)) }, []string{"event seq 4 (" + id(4) + "): is missing"}},
		{"run removed", func(tx store.Tx) error {
			for seq := uint64(4); seq <= 8; seq++ {
				if err := tx.Delete(audit.Events, seqKey(seq)); err != nil {
					return err
				}
			}
			return nil
		}, []string{"event seqs 4-8 (" + id(4) + "…): are missing"}},
		{"removed and closed up", func(tx store.Tx) error {
			for seq := uint64(10); seq < 14; seq++ {
				if err := tx.Put(audit.Events, seqKey(seq), readEvent(tx, seq+1)); err != nil {
					return err
				}
			}
			tx.Add("audit", -1)
			return tx.Delete(audit.Events, seqKey(14))
		}, []string{
			"seq 10 (" + id(10) + "): was changed", "says it is seq 11", "seq 11 (" + id(11) + "): was changed", "says it is seq 12", "seq 12 (" + id(12) + "): was changed",
			"says it is seq 13", "seq 13 (" + id(13) + "): was changed", "says it is seq 14", "cut short: its checkpoint has 14 events, the log 13",
		}},
		{"tail cut", func(tx store.Tx) error {
			tx.Add("audit", -2)
			_ = tx.Delete(audit.Events, seqKey(13))
			return tx.Delete(audit.Events, seqKey(14))
		}, []string{"cut short: its checkpoint has 14 events, the log 12"}},
		{"tail cut, counter kept", func(tx store.Tx) error { return tx.Delete(audit.Events, seqKey(14)) }, []string{"event seq 14 (" + id(14) + "): is missing"}},
		{"counter back", func(tx store.Tx) error { tx.Add("audit", -1); return nil }, []string{"event seq 14 (" + id(14) + "): stands beyond", "cut short"}},
		{"appended unsealed", func(tx store.Tx) error {
			tx.Add("audit", 1)
			return tx.Put(audit.Events, seqKey(15), bytes.ReplaceAll(bytes.ReplaceAll(readEvent(tx, 14), []byte(id(14)), []byte(id(15))), []byte(`"seq":14`), []byte(`"seq":15`)))
		}, []string{"seq 15 (" + id(15) + "): its hash is missing from the tree", "events 15-15 are not covered"}},
		{"stray key", func(tx store.Tx) error { return tx.Put(audit.Events, []byte("zz"), []byte("x")) }, []string{"event key 7a7a is not a sequence number"}},
		{"tree hash changed", func(tx store.Tx) error { return replaceTree(tx, func(v []byte) { v[len(v)-1] ^= 1 }) }, []string{"tree hash of level 1 over events 13-14 was changed"}},
		{"leaf hash changed", func(tx store.Tx) error { return replaceTree(tx, func(v []byte) { v[0] ^= 1 }) }, []string{"was changed: its hash is not the one in the tree"}},
		{"tree emptied", func(tx store.Tx) error { return tx.Put(treeBucket, seqKey(0), nil) }, []string{
			"seq 1 (" + id(1) + "): its hash is missing", "seq 2 (" + id(2) + "): its hash is missing", "tree hash of level 1 over events 1-2 is missing",
		}},
		{"checkpoint removed", func(tx store.Tx) error { return tx.Delete(headBucket, []byte("checkpoint")) }, []string{"14 events but no signed checkpoint"}},
		{"checkpoint's size changed", changeHead("\n14\n", "\n13\n"), []string{"invalid signature"}},
		{"checkpoint's root changed", changeHead("=\n\n", "A\n\n"), []string{"stored checkpoint does not hold"}},
		{"checkpoint is rubbish", func(tx store.Tx) error { return tx.Put(headBucket, []byte("checkpoint"), []byte("hello")) }, []string{"malformed note"}},
		{"keys changed", func(tx store.Tx) error { return tx.Put(headBucket, []byte("verifiers"), []byte("a+b+c\n")) }, []string{"verifier keys are not the ones"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			h.record(1, 4, 6, 2)
			h.tamper(c.do)
			got := h.verify(nil).Problems
			expect.Is(t, len(got), len(c.want))
			for i, want := range c.want {
				if i < len(got) && !strings.Contains(got[i], want) {
					t.Errorf("problem %d: %q, want %q", i, got[i], want)
				}
			}
			if t.Failed() {
				t.Logf("all: %s", strings.Join(got, "\n"))
			}
		})
	}
}

func changeHead(old, changed string) func(store.Tx) error {
	return func(tx store.Tx) error {
		head, err := tx.Get(headBucket, []byte("checkpoint"))
		if err != nil || !bytes.Contains(head, []byte(old)) {
			return fmt.Errorf("no %q in %q: %w", old, head, err)
		}
		return tx.Put(headBucket, []byte("checkpoint"), bytes.Replace(head, []byte(old), []byte(changed), 1))
	}
}

// rewrite makes the same log anew, one event different, sealed with the same
// key: what one who has the key can do.
func rewrite(t *testing.T, h *house, commits []int, change func(tx store.Tx) error) {
	t.Helper()
	h.close()
	h.data = filepath.Join(t.TempDir(), "forged.db")
	sealer := openSealer(t, h.key)
	db := openStore(t, h.data, store.Options{Seal: func(tx store.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return sealer.Seal(tx)
	}})
	l := audit.New(db, audit.Options{})
	for _, n := range commits {
		err := l.Update(t.Context(), alice, func(tx *audit.Tx) error {
			for range n {
				if _, err := tx.Record(entry("task.queued", "tk_1")); err != nil {
					return err
				}
			}
			return nil
		})
		expect.No(t, err)
	}
	expect.No(t, db.Close())
	h.open()
}

func TestSavedCheckpointCatchesARewrittenLog(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	saved := h.checkpoint()
	h.record(4)
	if r := h.verify(saved); !r.OK {
		t.Fatalf("honest log: %q", r.Problems)
	}
	rewrite(t, h, []int{3, 4}, func(store.Tx) error { return nil }) // other times
	if r := h.verify(nil); !r.OK {
		t.Fatalf("the forgery is meant to be perfect: %q", r.Problems)
	}
	r := h.verify(saved)
	expect.True(t, len(r.Problems) == 1 && strings.Contains(r.Problems[0], "does not extend the saved checkpoint: its first 4 events"),
		"problems %q", r.Problems)
}

func TestSavedCheckpointCatchesACutLog(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	short := expect.Of(h.Checkpoint(t.Context(), acme))(t)
	h.record(4)
	long := h.checkpoint()
	h.tamper(func(tx store.Tx) error { // back to the state of then, tree and all
		for seq := uint64(5); seq <= 8; seq++ {
			_ = tx.Delete(audit.Events, seqKey(seq))
		}
		tx.Add("audit", -4)
		tx.Add("audit.told", -4)
		_ = tx.Delete(treeBucket, seqKey(7))
		return tx.Put(headBucket, []byte("checkpoint"), bytes.Clone(short))
	})
	if r := h.verify(short); !r.OK {
		t.Fatalf("the cut is meant to be clean: %q", r.Problems)
	}
	r := h.verify(long)
	expect.True(t, len(r.Problems) == 1 && strings.Contains(r.Problems[0], "cut short: the saved checkpoint has 8 events, the log 4"),
		"problems %q", r.Problems)
}

func TestForeignSignatureIsNoCheckpointOfOurs(t *testing.T) {
	h := newHouse(t)
	h.record(3)
	stranger := newHouse(t)
	stranger.record(3)
	r := h.verify(stranger.checkpoint())
	expect.True(t, !r.OK && strings.Contains(r.Problems[0], "the saved checkpoint does not hold"), "problems %q", r.Problems)
	expect.Fails(t, expect.Fault(h.Verify(t.Context(), acme, []byte("rubbish"))), "rubbish was taken as a checkpoint")
	// The stranger's whole file under our key: only the trusted key tells.
	h.close()
	h.data = stranger.data
	stranger.close()
	h.open()
	r = h.verify(nil)
	expect.True(t, len(r.Problems) == 1 && strings.Contains(r.Problems[0], "not a trusted key"), "problems %q", r.Problems)
}

func TestVerifyNamesDamagedRecords(t *testing.T) {
	h := newHouse(t)
	h.record(4, 5)
	for _, c := range []struct{ old, changed, want string }{
		{core.NewID("ev", acme, 7), core.NewID("ev", acme, 8), "event seq 7 (" + core.NewID("ev", acme, 7) + "): its record is damaged"},
		{"swarmdeck/" + acme + "\n10\n", "swarmdeck/" + acme + "\n11\n", "the stored checkpoint is damaged"},
		{"swarmdeck/" + acme + "+", "swarmdeck/" + acme + "-", "the stored verifier keys are damaged"},
	} {
		h.close()
		file := expect.Of(os.ReadFile(h.data))(t)
		file = bytes.ReplaceAll(file, []byte(c.old), []byte(c.changed))
		expect.No(t, os.WriteFile(h.data, file, 0o600))
		h.open()
		expect.Has(t, strings.Join(h.verify(nil).Problems, "\n"), c.want)
	}
}

func TestEmptyLogVerifies(t *testing.T) {
	h := newHouse(t)
	r, err := h.Verify(t.Context(), other, nil)
	expect.True(t, err == nil && r.OK && r.RootHash == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "%+v, %v", r, err)
	expect.Err(t, expect.Fault(h.Verify(t.Context(), "t_none", nil)), store.ErrNoTenant, "no such tenant")
}
