// Package jsonl keeps a record of agents as one file of JSON lines: an event a
// line with its place and edges, in order, and at the end what there was in
// all.
package jsonl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/safeopen"
)

// MaxLine bounds one line: an event with all of its edges.
const MaxLine = dag.MaxEvent + 8<<20

// Line is one line: an event, or the end.
type Line struct {
	Pos     uint64        `json:"pos,omitzero"`
	Seq     uint64        `json:"seq,omitzero"`
	EventID string        `json:"event_id,omitempty"`
	Event   core.Raw      `json:"event,omitzero"` // without its event_id, canonical
	Edges   []dag.Edge    `json:"edges,omitzero"`
	End     *dag.Manifest `json:"end,omitzero"`
}

// Encode is a record as one line, with its line break.
func Encode(rec dag.Record) ([]byte, error) {
	edges := rec.Edges
	if edges == nil {
		edges = []dag.Edge{}
	}
	line, err := core.Encode(Line{Pos: rec.Pos, Seq: rec.Seq, EventID: rec.Event.EventID, Event: rec.Event.Canonical(), Edges: edges})
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", rec.Event.EventID, err)
	}
	return append(line, '\n'), nil
}

// Decode reads one line, strictly: what an event says must have its id.
func Decode(line []byte) (rec dag.Record, end *dag.Manifest, err error) {
	var l Line
	if err := core.CheckObject("line", line, MaxLine); err != nil {
		return rec, nil, err
	}
	if err := core.Decode(line, &l); err != nil {
		return rec, nil, err
	}
	switch {
	case l.End != nil && l.EventID == "" && l.Event == nil:
		return rec, l.End, nil
	case l.End != nil || l.EventID == "" || l.Event == nil:
		return rec, nil, core.Errorf(core.InvalidInput, "line: wants event_id, event, edges, pos and seq, or end alone").With("field", "line")
	}
	e, err := dag.ParseAs(l.EventID, l.Event)
	return dag.Record{Pos: l.Pos, Seq: l.Seq, Event: e, Edges: l.Edges}, nil, err
}

// Format implements dag.Format.
type Format struct{}

var _ dag.Format = Format{}

// Export implements dag.Format; dest is a file.
func (Format) Export(_ context.Context, dest string, records iter.Seq2[dag.Record, error]) error {
	return Create(dest, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<18)
		var tally dag.Tally
		for rec, err := range records {
			if err != nil {
				return err
			}
			line, err := Encode(rec)
			if err != nil {
				return err
			}
			tally.Add(rec.Event)
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		end := tally.Manifest()
		line, err := core.Encode(Line{End: &end})
		if err != nil {
			return fmt.Errorf("encode the end: %w", err)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		return w.Flush()
	})
}

// Create makes a file that does not exist yet, and leaves none when write
// fails. What is there once it returns is on disk.
func Create(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (Format) Import(_ context.Context, src string, each func(dag.Record) error) (dag.Manifest, error) {
	var nobody *safeopen.Own // who names a file to import has checked it
	f, err := nobody.File(src)
	if err != nil {
		return dag.Manifest{}, err
	}
	defer f.Close()
	return Read(f, each)
}

// Read reads lines up to the end; nothing may follow it.
func Read(r io.Reader, each func(dag.Record) error) (m dag.Manifest, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 1<<16), MaxLine)
	ended := false
	for n := 1; in.Scan(); n++ {
		if ended {
			return m, core.Errorf(core.InvalidInput, "line %d: something follows the end", n).With("field", "line")
		}
		rec, end, err := Decode(in.Bytes())
		if err != nil {
			return m, fmt.Errorf("line %d: %w", n, err)
		}
		if end != nil {
			m, ended = *end, true
			continue
		}
		if err := each(rec); err != nil {
			return m, err
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return m, core.Errorf(core.InvalidInput, "line: longer than %d bytes", MaxLine).With("field", "line")
	}
	return m, in.Err()
}

// Events is a file of events alone, one a line, as dag emit takes them.
type Events struct{}

var _ dag.Source = Events{}

// Read implements dag.Source; src is a file.
func (Events) Read(_ context.Context, src string, each func(dag.Event) error) error {
	var nobody *safeopen.Own // who names a file to import has checked it
	f, err := nobody.File(src)
	if err != nil {
		return err
	}
	defer f.Close()
	for e, err := range dag.ReadEvents(f) {
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
