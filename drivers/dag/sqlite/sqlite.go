// Package sqlite keeps a record of agents as a SQLite database that an analyst
// can query: events, edges and nodes are tables, runs, calls and messages are
// views of them.
//
// SQLite itself runs as WebAssembly: a file from outside can at worst spoil the
// memory that SQLite has for itself.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/embed" // the database itself, as wasm

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/dag"
)

// Format implements dag.Format.
type Format struct{}

var _ dag.Format = Format{}

// Export implements dag.Format; dest is a file.
func (Format) Export(ctx context.Context, dest string, records iter.Seq2[dag.Record, error]) error {
	return jsonl.Create(dest, func(*os.File) error {
		db, err := open(ctx, dest, sqlite3.OPEN_READWRITE)
		if err != nil {
			return err
		}
		// No journal: a file that was not finished is removed.
		err = db.Exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;" + schema)
		if err == nil {
			err = fill(db, records)
		}
		if err == nil {
			err = db.Exec(views + "COMMIT; PRAGMA optimize;")
		}
		return errors.Join(err, db.Close())
	})
}

// open opens a database. A path is a path, whatever it looks like.
func open(ctx context.Context, path string, flags sqlite3.OpenFlag) (*sqlite3.Conn, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := sqlite3.OpenFlags(full, flags|sqlite3.OPEN_EXRESCODE)
	if err != nil {
		return nil, err
	}
	db.SetInterrupt(ctx)
	db.Limit(sqlite3.LIMIT_LENGTH, jsonl.MaxLine)
	return db, nil
}

// fill writes all rows.
func fill(db *sqlite3.Conn, records iter.Seq2[dag.Record, error]) error {
	var into [3]*sqlite3.Stmt
	for i, t := range []table{events, edges, nodes} {
		s, _, err := db.Prepare(t.insert())
		if err != nil {
			return err
		}
		defer s.Close()
		into[i] = s
	}
	var tally dag.Tally
	for rec, err := range records {
		if err != nil {
			return err
		}
		tally.Add(rec.Event)
		if err := put(into[0], eventRow(rec)); err != nil {
			return fmt.Errorf("write event %s: %w", rec.Event.EventID, err)
		}
		for i, x := range rec.Edges {
			if err := put(into[1], edgeRow(rec.Pos, i, x)); err != nil {
				return fmt.Errorf("write an edge of event %s: %w", rec.Event.EventID, err)
			}
		}
		for i, n := range rec.Event.Nodes {
			row, err := nodeRow(rec.Pos, i, n)
			if err == nil {
				err = put(into[2], row)
			}
			if err != nil {
				return fmt.Errorf("write a node of event %s: %w", rec.Event.EventID, err)
			}
		}
	}
	m := tally.Manifest()
	s, _, err := db.Prepare("INSERT INTO manifest(format, version, events, chain) VALUES (?,?,?,?)")
	if err != nil {
		return err
	}
	defer s.Close()
	return put(s, []cell{text(m.Format), number(uint64(m.Version)), number(m.Events), text(m.Chain)})
}

// put inserts one row.
func put(s *sqlite3.Stmt, row []cell) error {
	for i, c := range row {
		var err error
		switch c.is {
		case 't':
			err = s.BindText(i+1, c.text)
		case 'n':
			err = s.BindInt64(i+1, int64(c.num))
		default:
			err = s.BindNull(i + 1)
		}
		if err != nil {
			return err
		}
	}
	return s.Exec()
}
