package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/safeopen"
)

// Import implements dag.Format. Every column must say what the event itself
// says.
func (Format) Import(ctx context.Context, src string, each func(dag.Record) error) (m dag.Manifest, err error) {
	var nobody *safeopen.Own   // who names a file to import has checked it
	f, err := nobody.File(src) // says more than SQLite does
	if err != nil {
		return m, err
	}
	if err := f.Close(); err != nil {
		return m, err
	}
	defer func() {
		// A damaged file may lead SQLite's code out of its own memory.
		if p := recover(); p != nil {
			err = core.Errorf(core.InvalidInput, "file: SQLite can't read it: %v", p).With("field", "file")
		}
	}()
	db, err := open(ctx, src, sqlite3.OPEN_READONLY)
	if err != nil {
		return m, damaged(err)
	}
	r := &reader{db: db}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer r.close()
	return r.read(each)
}

// damaged says of SQLite's errors that they are about the file.
func damaged(err error) error {
	var e *sqlite3.Error
	if !errors.As(err, &e) || errors.Is(err, sqlite3.INTERRUPT) {
		return err
	}
	return core.Errorf(core.InvalidInput, "file: %v", err).With("field", "file")
}

// reader reads one database.
type reader struct {
	db           *sqlite3.Conn
	stmts        []*sqlite3.Stmt
	edges, nodes uint64 // rows read
}

func (r *reader) close() {
	for _, s := range r.stmts {
		_ = s.Close() // its error came with the last step
	}
}

func (r *reader) prepare(sql string) (*sqlite3.Stmt, error) {
	s, _, err := r.db.Prepare(sql)
	if err != nil {
		return nil, damaged(err)
	}
	r.stmts = append(r.stmts, s)
	return s, nil
}

func (r *reader) read(each func(dag.Record) error) (m dag.Manifest, err error) {
	if _, err := r.db.Config(sqlite3.DBCONFIG_TRUSTED_SCHEMA, false); err != nil {
		return m, err
	}
	if err := r.plainTables(); err != nil {
		return m, err
	}
	all, err := r.prepare("SELECT " + events.columns + " FROM events ORDER BY pos")
	if err != nil {
		return m, err
	}
	ofEvent := map[table]*sqlite3.Stmt{}
	for _, t := range []table{edges, nodes} {
		if ofEvent[t], err = r.prepare("SELECT " + t.columns + " FROM " + t.name + " WHERE pos = ? ORDER BY i"); err != nil {
			return m, err
		}
	}
	for all.Step() {
		rec, err := r.record(all, ofEvent[edges], ofEvent[nodes])
		if err == nil {
			err = each(rec)
		}
		if err != nil {
			return m, err
		}
	}
	if err := all.Err(); err != nil {
		return m, damaged(err)
	}
	for _, t := range []struct {
		name string
		n    uint64
	}{{edges.name, r.edges}, {nodes.name, r.nodes}} {
		row, err := r.one("SELECT count(*) FROM "+t.name, 1)
		if err != nil {
			return m, err
		}
		if row[0].num != t.n {
			return m, core.Errorf(core.InvalidInput, "%s: %d rows, and the events have %d: some were added", t.name, row[0].num, t.n).With("field", t.name)
		}
	}
	row, err := r.one("SELECT format, version, events, chain FROM manifest", 4)
	if err != nil {
		return m, err
	}
	return dag.Manifest{Format: row[0].text, Version: int(row[1].num), Events: row[2].num, Chain: row[3].text}, nil
}

// plainTables refuses a file whose tables are views or virtual: reading them
// could do anything.
func (r *reader) plainTables() error {
	for _, name := range []string{"manifest", events.name, edges.name, nodes.name} {
		s, err := r.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ? AND sql NOT LIKE '%virtual%'")
		if err != nil {
			return err
		}
		if err := s.BindText(1, name); err != nil {
			return err
		}
		if !s.Step() || s.ColumnInt64(0) != 1 {
			if err := s.Err(); err != nil {
				return damaged(err)
			}
			return core.Errorf(core.InvalidInput, "file: has no table %s; is it a record that was exported?", name).With("field", "file")
		}
	}
	return nil
}

// one reads the only row of a query.
func (r *reader) one(sql string, width int) ([]cell, error) {
	s, err := r.prepare(sql)
	if err != nil {
		return nil, err
	}
	if !s.Step() {
		if err := s.Err(); err != nil {
			return nil, damaged(err)
		}
		return nil, core.Errorf(core.InvalidInput, "manifest: missing: was the file cut off?").With("field", "manifest")
	}
	return row(s, width), nil
}

// row reads the values of a row. A value of another type is nothing.
func row(s *sqlite3.Stmt, width int) []cell {
	cells := make([]cell, width)
	for i := range cells {
		switch s.ColumnType(i) {
		case sqlite3.TEXT:
			cells[i] = text(s.ColumnText(i))
		case sqlite3.INTEGER:
			cells[i] = number(uint64(s.ColumnInt64(i)))
		case sqlite3.NULL:
		default:
			cells[i] = cell{is: 'x'}
		}
	}
	return cells
}

// record reads an event with its edges, and compares the rows with it.
func (r *reader) record(all, ofEdges, ofNodes *sqlite3.Stmt) (rec dag.Record, err error) {
	given := row(all, events.width())
	e, err := dag.ParseAs(given[2].text, []byte(given[12].text))
	if err != nil {
		return rec, err
	}
	rec = dag.Record{Pos: given[0].num, Seq: given[1].num, Event: e, Edges: []dag.Edge{}}
	if err := same(rec, events, eventRow(rec), given); err != nil {
		return rec, err
	}
	left := jsonl.MaxLine
	err = r.rows(ofEdges, edges, rec.Pos, func(i int, given []cell) error {
		x, err := asEdge(given)
		if err != nil {
			return core.Errorf(core.InvalidInput, "event %s: edge %d: %v: it was changed", e.EventID, i, err).With("field", "edges").With("event_id", e.EventID)
		}
		for _, c := range given {
			left -= len(c.text) + 16
		}
		if left < 0 {
			return core.Errorf(core.InvalidInput, "event %s: its edges take more than %d bytes", e.EventID, jsonl.MaxLine).With("field", "edges").With("event_id", e.EventID)
		}
		rec.Edges = append(rec.Edges, x)
		r.edges++
		return same(rec, edges, edgeRow(rec.Pos, i, x), given)
	})
	if err != nil {
		return rec, err
	}
	n := 0
	err = r.rows(ofNodes, nodes, rec.Pos, func(i int, given []cell) error {
		n++
		r.nodes++
		if i >= len(e.Nodes) {
			return e.Same("nodes", fmt.Sprint(len(e.Nodes)), "more")
		}
		want, err := nodeRow(rec.Pos, i, e.Nodes[i])
		if err != nil {
			return err
		}
		return same(rec, nodes, want, given)
	})
	if err == nil {
		err = e.Same("nodes", fmt.Sprint(len(e.Nodes)), fmt.Sprint(n))
	}
	return rec, err
}

// rows reads the rows of an event in another table.
func (r *reader) rows(s *sqlite3.Stmt, t table, pos uint64, fn func(i int, given []cell) error) error {
	if err := s.Reset(); err != nil {
		return damaged(err)
	}
	if err := s.BindInt64(1, int64(pos)); err != nil {
		return err
	}
	for i := 0; s.Step(); i++ {
		if err := fn(i, row(s, t.width())); err != nil {
			return err
		}
	}
	return damaged(s.Err())
}

// same compares a row with what the event says.
func same(rec dag.Record, t table, want, given []cell) error {
	for i := range want {
		if want[i] != given[i] {
			return rec.Event.Same(t.name+"."+t.column(i), want[i].String(), given[i].String())
		}
	}
	return nil
}

func (c cell) String() string {
	switch c.is {
	case 't':
		return c.text
	case 'n':
		return fmt.Sprint(c.num)
	case 0:
		return "NULL"
	}
	return "a value of another type"
}
