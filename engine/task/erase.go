package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
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

// EraseTasks is a record.Erase: input, title, intent, feedback, output, error
// and files of tasks.
func (b *Table) EraseTasks(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	var files []string
	next, n, err = record.Sweep{
		Ledger: b.ledger, Kind: "tasks", Bucket: bTask,
		Erase: func(tx *audit.Tx, e *record.Erasure, key, value []byte) (bool, error) {
			var t Task
			if len(key) != 8 || core.DecodeStored(value, &t) != nil {
				of.Leave("task " + core.NewID(core.TaskPrefix, tx.Tenant(), record.LastSeq(key)) + " (it can't be read)")
				return false, nil
			}
			whose, over, err := of.Task(tx, t.TaskID)
			if err != nil || whose == record.NotTheirs && len(of.Said[t.TaskID]) == 0 {
				return false, err
			}
			if whose == record.NotTheirs {
				return b.eraseReason(tx, of, e, &t, over)
			}
			if !over {
				of.Leave(fmt.Sprintf("task %s (%s)", t.TaskID, t.Status))
				return false, nil
			}
			if e == nil && b.spills(&t) {
				files = append(files, spillNames(&t)...) // those that an erasure before did not come to, too
				if err := b.leftAway(tx, of, &t); err != nil {
					return false, err
				}
			}
			return b.eraseTask(tx, e, &t, value, whose)
		},
	}.Slice(ctx, by, of, from)
	if err != nil || b.opt.Spill == "" {
		return next, n, err
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(b.opt.Spill, by.Tenant, f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return next, n, fmt.Errorf("remove an output: %w", err)
		}
	}
	return next, n, nil
}

// leftAway notes the output of a task that lies on another machine.
func (b *Table) leftAway(tx *audit.Tx, of *record.Subject, t *Task) error {
	r, err := b.ResultIn(tx, t.TaskID)
	if errors.Is(err, core.Kind(core.NotFound)) {
		return nil
	}
	var s spilled
	if err != nil || core.DecodeStored(r.Output, &s) != nil { // an output of another kind names no file
		return err
	}
	for _, f := range []string{s.File, s.Stderr} {
		if away := s.Place.Away(b.opt.Place, "the output of task "+t.TaskID, f); f != "" && away != nil {
			of.Leave(fmt.Sprintf("the output of task %s (it lies on %s, at %s: remove it there)", t.TaskID, s.Place.Host(), f))
		}
	}
	return nil
}

// spillNames are the files that attempts of a task may have written.
func spillNames(t *Task) (names []string) {
	for a := range t.Attempt + 1 {
		name := fmt.Sprintf("%s.%d", t.TaskID, a)
		names = append(names, name, name+".stderr")
	}
	return names
}

// eraseTask erases a finished task; without an erasure it only looks.
func (b *Table) eraseTask(tx *audit.Tx, e *record.Erasure, t *Task, header []byte, whose record.Whose) (bool, error) {
	seq := t.Seq()
	input, err := tx.Get(bInput, record.Seq(seq))
	if err != nil {
		return false, err
	}
	result, err := tx.Get(bResult, record.Seq(seq))
	if err != nil {
		return false, err
	}
	input, result = bytes.Clone(input), bytes.Clone(result)
	var r Result
	if result != nil {
		if err := core.DecodeStored(result, &r); err != nil {
			return false, &core.Damaged{Noun: "result of task", Key: t.TaskID, Err: err}
		}
	}
	texts := []*string{&t.Feedback}
	newInput := input
	if whose == record.Theirs {
		texts = append(texts, &t.Title, &t.Intent)
		newInput = core.Erase(input)
	}
	some := !bytes.Equal(input, newInput)
	for _, text := range texts {
		if erased := core.EraseText(*text); erased != *text {
			*text, some = erased, true
		}
	}
	if r.erase() {
		some = true
	}
	if !some || e == nil {
		return some, nil
	}
	e.Add(t.TaskID, header, input, result)
	if result != nil {
		if err := b.PutResult(tx, &r); err != nil {
			return true, err
		}
	}
	if input != nil {
		if err := b.PutInput(tx, seq, newInput); err != nil {
			return true, err
		}
	}
	return true, b.write(tx, t, seq, t.appendJSON(nil))
}

// eraseReason takes a reason of the subject's out of what a task of others came
// to.
func (b *Table) eraseReason(tx *audit.Tx, of *record.Subject, e *record.Erasure, t *Task, over bool) (bool, error) {
	r, err := b.ResultIn(tx, t.TaskID)
	if errors.Is(err, core.Kind(core.NotFound)) || err == nil && (r.Error == nil || !of.SaidIn(t.TaskID, r.Error.Message)) {
		return false, nil
	}
	if err != nil || !over || e == nil {
		return over, err
	}
	e.Add(t.TaskID, []byte(r.Error.Message))
	r.Error.Message = core.EraseText(r.Error.Message)
	tx.Changed("task", t.TaskID)
	return true, b.PutResult(tx, &r)
}

// erase takes out what a task came to, and says whether there was something.
func (r *Result) erase() (some bool) {
	if len(r.Output) > len(`{}`) && !core.IsErased(r.Output) {
		r.Output, some = core.Erase(r.Output), true
	}
	if r.Error == nil {
		return some
	}
	c := *r.Error
	c.Message, c.Details = core.EraseText(c.Message), core.Erase(c.Details)
	some = some || c.Message != r.Error.Message || !bytes.Equal(c.Details, r.Error.Details)
	r.Error = &c
	return some
}

// EraseLogs is a record.Erase: the lines of tasks, and those that agents have of
// them.
func (b *Table) EraseLogs(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return record.Sweep{
		Ledger: b.ledger, Kind: "logs", Bucket: bLog,
		Skip: func(tx *audit.Tx, key []byte) ([]byte, error) {
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
		},
		Erase: func(tx *audit.Tx, e *record.Erasure, key, value []byte) (bool, error) {
			var line LogLine
			stream := streamAt(key)
			id := fmt.Sprintf("%s:%d", stream, record.LastSeq(key))
			if core.DecodeStored(value, &line) != nil {
				of.Leave("line " + id + " (it can't be read)")
				return false, nil
			}
			task := line.TaskID
			if !strings.HasPrefix(stream, "agent:") {
				task = stream
			}
			whose, over, err := of.Task(tx, task)
			theirs := whose != record.NotTheirs || stream == "agent:"+of.Name || of.SaidIn(task, line.Message)
			if err != nil || !over || !theirs {
				return false, err
			}
			erased := core.EraseText(line.Message)
			if erased == line.Message || e == nil {
				return erased != line.Message, nil
			}
			e.Add(id, value)
			line.Message = erased
			tx.Changed("log", stream)
			data := core.MustEncode(line)
			if bounded(stream) {
				tx.Add(countBytes(stream), int64(len(data)-len(value)))
			}
			return true, tx.Put(bLog, bytes.Clone(key), data)
		},
	}.Slice(ctx, by, of, from)
}

// streamAt is the stream of a line's key.
func streamAt(key []byte) string { return string(key[:max(bytes.IndexByte(key, 0), 0)]) }
