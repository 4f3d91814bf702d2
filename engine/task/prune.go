package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// How far one slice of pruning looks.
const (
	pruneLook     = 4096 // tasks or streams, in one read
	pruneChildren = 1024 // of one task; one that has more waits until they leave
)

// Prune removes a slice of the oldest finished tasks that the limit lets
// go, with their input, result, log and files. Those that run or wait stay, as
// do parents of such and what such wait for. It looks at tasks from a key on, and
// returns where to look next, nil when it is through.
func (b *Table) Prune(ctx context.Context, by core.Caller, limit record.Limit, from []byte) (next []byte, err error) {
	var found []uint64
	err = b.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		found, next, err = prunable(tx, limit, from)
		return err
	})
	if err != nil || len(found) == 0 {
		return next, err
	}
	var files []string
	err = b.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r := record.Removal{Kind: "tasks"}
		excess := limit.Excess(finished(tx))
		rows := 0
		for _, seq := range found {
			var t Task
			err := load(tx, seq, &t)
			if errors.Is(err, core.Kind(core.NotFound)) {
				continue
			}
			if err == nil && !limit.Old(t.CompletedAt) && excess <= int64(r.Count) {
				break
			}
			leaves := false
			if err == nil {
				leaves, err = canLeave(tx, &t)
			}
			if err != nil {
				return err
			}
			if !leaves {
				continue
			}
			gone, n, err := b.forget(tx, &r, &t, record.SliceRows-rows)
			if err != nil {
				return err
			}
			if files = append(files, gone...); n < 0 {
				next = record.Seq(seq) // the rest of its log in the next slice
				break
			}
			rows += n
		}
		return r.Record(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("prune tasks: %w", err)
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(b.opt.Spill, by.Tenant, filepath.Base(f))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return next, fmt.Errorf("remove an output: %w", err)
		}
	}
	return next, nil
}

// finished counts the tasks that are over.
func finished(tx store.Tx) int64 {
	return allTasks().Total(tx) - tx.Counter(countStatus(Queued)) - tx.Counter(countStatus(Running))
}

// prunable finds the next tasks that may leave.
func prunable(tx *audit.Tx, limit record.Limit, from []byte) (found []uint64, next []byte, err error) {
	excess := limit.Excess(finished(tx))
	if excess == 0 && limit.Before.IsZero() {
		return nil, nil, nil
	}
	seen := 0
	err = tx.Scan(bTask, from, nil, false, func(key, value []byte) (bool, error) {
		if seen++; seen > pruneLook || len(found) == record.Slice {
			next = bytes.Clone(key)
			return false, nil
		}
		many := int64(len(found)) < excess
		var t Task
		if core.DecodeStored(value, &t) != nil {
			return true, nil // it can't be read, and is named elsewhere
		}
		if !many && !limit.Old(t.CreatedAt) {
			return false, nil // those after it are younger still
		}
		if !t.Status.Terminal() || !many && !limit.Old(t.CompletedAt) {
			return true, nil
		}
		leaves, err := canLeave(tx, &t)
		if leaves {
			found = append(found, record.LastSeq(key))
		}
		return true, err
	})
	return found, next, err
}

// canLeave says whether nothing alive needs a task.
func canLeave(tx *audit.Tx, t *Task) (bool, error) {
	if !t.Status.Terminal() {
		return false, nil
	}
	seq := t.Seq()
	waited, n := false, 0
	from, to := record.Seq(seq).Under()
	live := false
	err := errors.Join(
		tx.Scan(bAfter, from, to, false, func(_, _ []byte) (bool, error) { waited = true; return false, nil }),
		children(tx, seq, func(child uint64) bool {
			n++
			var c Task
			if err := load(tx, child, &c); err != nil && !errors.Is(err, core.Kind(core.NotFound)) {
				live = true // nobody knows
			} else if err == nil {
				live = !c.Status.Terminal()
			}
			return !live && n <= pruneChildren
		}))
	return !waited && !live && n <= pruneChildren, err
}

// forget removes a finished task, or the beginning of its log where that alone
// has more rows than may go: then n is negative. It returns the files that the
// result names.
func (b *Table) forget(tx *audit.Tx, r *record.Removal, t *Task, most int) (files []string, n int, err error) {
	seq := t.Seq()
	lines, err := firstLines(tx, t.TaskID, max(most, 1))
	if err != nil {
		return nil, 0, err
	}
	if len(lines) >= max(most, 1) {
		return nil, -1, dropLines(tx, r, t.TaskID, lines)
	}
	var parts [3][]byte
	for i, b := range []store.Bucket{bTask, bInput, bResult} {
		value, err := tx.Get(b, record.Seq(seq))
		if err != nil {
			return nil, 0, err
		}
		parts[i] = bytes.Clone(value)
		if value != nil {
			err = tx.Delete(b, record.Seq(seq))
		}
		if err != nil {
			return nil, 0, err
		}
	}
	r.Add(t.TaskID, parts[:]...)
	for _, k := range lines {
		if err := tx.Delete(bLog, k); err != nil {
			return nil, 0, err
		}
	}
	if n := tx.Counter(countLog(t.TaskID)); n != 0 {
		tx.Add(countLog(t.TaskID), -n)
	}
	if err := unlist(tx, t, seq); err != nil {
		return nil, 0, err
	}
	tx.Gone("task", t.TaskID)
	tx.Changed("task", t.TaskID)
	if err := b.leaves(tx, t); err != nil {
		return nil, 0, err
	}
	return b.filesOf(t, parts[2]), len(lines) + 8, nil
}

// unlist takes a finished task out of every list and count.
func unlist(tx *audit.Tx, t *Task, seq uint64) error {
	tx.Add(countStatus(t.Status), -1)
	allTasks().Leave(tx, seq)
	if rare(t.Status) {
		if err := tx.Delete(bRare, rareKey(tx, t.Status, seq)); err != nil {
			return err
		}
	}
	for _, ix := range t.indexes() {
		if err := tx.Delete(ix.bucket, ix.key); err != nil {
			return err
		}
		if ix.count != "" {
			tx.Add(ix.count, -1)
		}
	}
	return nil
}

// filesOf are the outputs of a result that are in files.
func (b *Table) filesOf(t *Task, result []byte) []string {
	var r struct {
		Output spilled `json:"output"`
	}
	if !b.spills(t) || !bytes.Contains(result, []byte(`"spill`)) || core.DecodeStored(result, &r) != nil {
		return nil
	}
	return core.Where([]string{r.Output.File, r.Output.Stderr}, func(f string) bool { return f != "" })
}

// firstLines are the keys of the oldest lines of a log.
func firstLines(tx *audit.Tx, stream string, most int) (keys [][]byte, err error) {
	from, to := record.Text(stream).Under()
	err = tx.Scan(bLog, from, to, false, func(key, _ []byte) (bool, error) {
		keys = append(keys, bytes.Clone(key))
		return len(keys) < most, nil
	})
	return keys, err
}

// dropLines removes lines of a log.
func dropLines(tx *audit.Tx, r *record.Removal, stream string, keys [][]byte) error {
	size := int64(0)
	for _, k := range keys {
		value, err := tx.Get(bLog, k)
		if err == nil {
			size += int64(len(value))
			r.Add(fmt.Sprintf("%s:%d", stream, record.LastSeq(k)), value)
			err = tx.Delete(bLog, k)
		}
		if err != nil {
			return err
		}
	}
	if bounded(stream) {
		tx.Derived().Add(countBytes(stream), -size)
	}
	tx.Changed("log", stream)
	return nil
}
