package task

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Whose says whose tasks are, for the erasure of one subject; see
// record.Subject. What it found of a task it remembers: that never changes.
func (b *Table) Whose(of *record.Subject) func(tx *audit.Tx, id string) (record.Whose, bool, error) {
	known := map[uint64]record.Whose{}
	return func(tx *audit.Tx, id string) (record.Whose, bool, error) {
		if id == "" {
			return record.NotTheirs, true, nil
		}
		seq, err := core.LocalSeq(core.TaskPrefix, tx.Tenant(), id)
		if err != nil {
			return record.NotTheirs, true, nil
		}
		var t Task
		err = load(tx, seq, &t)
		over := t.Status.Terminal()
		if whose, ok := known[seq]; ok && err == nil {
			return whose, over, nil
		}
		ran := err == nil && t.Agent == of.Name
		whose, way := record.NotTheirs, []uint64{}
		for ; err == nil; err = load(tx, seq, &t) { // it, and what it was run for
			if known[seq] == record.Theirs || of.Is(t.CreatedBy, t.CreatedPerson) {
				whose = record.Theirs
				break
			}
			way = append(way, seq)
			if t.ParentTaskID == "" {
				break
			}
			t, seq = Task{}, Seq(t.ParentTaskID)
		}
		switch {
		case errors.Is(err, core.Kind(core.NotFound)): // it left, or one before it
			err = nil
		case len(core.DamagedIn(err)) > 0:
			of.Leave("task " + id + " (it can't be read)")
			return record.NotTheirs, false, nil
		}
		for _, n := range way {
			known[n] = whose
		}
		if ran && whose == record.NotTheirs {
			whose = record.RanByThem
			known[way[0]] = whose
		}
		return whose, over, err
	}
}

// Erasers erase tasks, and the lines of tasks and those that agents have of them.
func (b *Table) Erasers() []record.Eraser {
	return []record.Eraser{
		record.Sweep{Ledger: b.ledger, Kind: "tasks", Bucket: bTask, Erase: b.eraseTask}.Eraser(),
		record.Sweep{Ledger: b.ledger, Kind: "logs", Bucket: bLog, Skip: skipLog, Erase: eraseLine}.Eraser(),
	}
}

// eraseTask takes out input, title, intent, feedback, output, error and files; of
// a task of others a reason that the subject gave.
func (b *Table) eraseTask(e *record.Erasure, key, value []byte) {
	var t Task
	if len(key) != 8 || core.DecodeStored(value, &t) != nil {
		e.Waits("task " + core.NewID(core.TaskPrefix, e.Tx.Tenant(), record.LastSeq(key)) + " (it can't be read)")
		return
	}
	e.ID = t.TaskID
	whose, over := e.Whose(t.TaskID)
	theirs := whose != record.NotTheirs
	if theirs && !over {
		e.Waits(fmt.Sprintf("task %s (%s)", t.TaskID, t.Status))
	}
	if !over || !theirs && len(e.Of.Said[t.TaskID]) == 0 {
		return
	}
	seq := t.Seq()
	r, err := b.ResultIn(e.Tx, t.TaskID)
	has := err == nil
	if !has && !errors.Is(err, core.Kind(core.NotFound)) {
		e.Check(err)
		return
	}
	for _, beside := range []store.Bucket{bInput, bResult} {
		row, err := e.Tx.Get(beside, record.Seq(seq))
		e.Check(err)
		e.Row(row)
	}
	if has && r.Error != nil && (theirs || e.Of.SaidIn(t.TaskID, r.Error.Message)) {
		e.Wipe(&r.Error.Message)
	}
	if has {
		e.Then(func() error { return b.PutResult(e.Tx, &r) })
	}
	if theirs {
		b.eraseWhole(e, &t, &r, seq, whose)
	}
	e.Then(func() error { return b.write(e.Tx, &t, seq, t.appendJSON(nil)) })
}

// eraseWhole takes out of a task that is theirs what is not the reason of its end.
func (b *Table) eraseWhole(e *record.Erasure, t *Task, r *Result, seq uint64, whose record.Whose) {
	if b.spills(t) {
		b.leftAway(e.Of, r)
		e.After(func() error { return b.removeSpilled(t) })
	}
	e.Wipe(&t.Feedback, &r.Output)
	if r.Error != nil {
		e.Wipe(&r.Error.Details)
	}
	if whose == record.Theirs {
		row, err := e.Tx.Get(bInput, record.Seq(seq))
		e.Check(err)
		input := core.Raw(bytes.Clone(row))
		if e.Wipe(&t.Title, &t.Intent); e.Wipe(&input) {
			e.Then(func() error { return b.PutInput(e.Tx, seq, input) })
		}
	}
}

// leftAway notes the output of a task that lies on another machine.
func (b *Table) leftAway(of *record.Subject, r *Result) {
	var s spilled
	if core.DecodeStored(r.Output, &s) != nil { // an output of another kind names no file
		return
	}
	for _, f := range []string{s.File, s.Stderr} {
		if away := s.Place.Away(b.opt.Place, "the output of task "+r.TaskID, f); f != "" && away != nil {
			of.Leave(fmt.Sprintf("the output of task %s (it lies on %s, at %s: remove it there)", r.TaskID, s.Place.Host(), f))
		}
	}
}

// removeSpilled removes the files that attempts of a task may have written.
func (b *Table) removeSpilled(t *Task) error {
	for a := 0; a <= t.Attempt && b.opt.Spill != ""; a++ {
		name := filepath.Join(b.opt.Spill, t.TenantID, fmt.Sprintf("%s.%d", t.TaskID, a))
		for _, err := range []error{os.Remove(name), os.Remove(name + ".stderr")} {
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("remove an output: %w", err)
			}
		}
	}
	return nil
}

// skipLog passes over the lines of tasks that are nobody's, or not over.
func skipLog(tx *audit.Tx, of *record.Subject, key []byte) ([]byte, error) {
	stream := streamAt(key)
	if strings.HasPrefix(stream, "agent:") {
		return nil, nil
	}
	whose, over, err := of.Task(tx, stream)
	if err != nil || over && (whose != record.NotTheirs || len(of.Said[stream]) > 0) {
		return nil, err
	}
	_, after := record.Text(stream).Under()
	return after, nil
}

func eraseLine(e *record.Erasure, key, value []byte) {
	var line LogLine
	stream := streamAt(key)
	e.ID = fmt.Sprintf("%s:%d", stream, record.LastSeq(key))
	if core.DecodeStored(value, &line) != nil {
		e.Waits("line " + e.ID + " (it can't be read)")
		return
	}
	task := line.TaskID
	if !strings.HasPrefix(stream, "agent:") {
		task = stream
	}
	whose, over := e.Whose(task)
	theirs := whose != record.NotTheirs || stream == "agent:"+e.Of.Name || e.Of.SaidIn(task, line.Message)
	if !over || !theirs || !e.Wipe(&line.Message) {
		return
	}
	e.Then(func() error {
		e.Tx.Changed("log", stream)
		data := core.MustEncode(line)
		if bounded(stream) {
			e.Tx.Derived().Add(countBytes(stream), int64(len(data)-len(value)))
		}
		return e.Tx.Put(bLog, key, data)
	})
}

// streamAt is the stream of a line's key.
func streamAt(key []byte) string { return string(key[:max(bytes.IndexByte(key, 0), 0)]) }
