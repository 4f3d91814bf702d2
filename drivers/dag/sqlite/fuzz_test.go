package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// FuzzCells puts hostile values into single cells of a sound database: reading
// it ends in an error that says what is wrong, or in the events that it had.
func FuzzCells(f *testing.F) {
	e, err := dag.Parse([]byte(`{"kind":"history_append","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a","list":"main","message_ref":"m",` +
		`"nodes":[{"type":"Message","id":"m","role":"user","content":[],"created_at":"2026-01-02T03:04:05Z","valid_to":"2027-01-02T03:04:05Z"}]}`))
	expect.No(f, err)
	mounted := []dag.Edge{{
		Type: dag.MountsResource, From: dag.NodeRef{Type: dag.TypeRun, ID: "r"}, To: dag.NodeRef{Type: dag.TypeResource, ID: "x"},
		Attrs: dag.Attrs{Mount: "/m", Mode: dag.ReadOnly}, Valid: dag.Valid{From: e.TS},
	}}
	path := filepath.Join(f.TempDir(), "sound.db")
	expect.No(f, (Format{}).Export(f.Context(), path, func(yield func(dag.Record, error) bool) {
		yield(dag.Record{Pos: 1, Seq: 1, Event: e, Edges: mounted}, nil)
	}))
	sound := expect.Of(os.ReadFile(path))(f)
	tables := []struct{ name, columns string }{{"events", events.columns}, {"edges", edges.columns}, {"nodes", nodes.columns}, {"manifest", "format, version, events, chain"}}
	for i, t := range tables {
		for n := range strings.Split(t.columns, ", ") {
			f.Add(uint8(i), uint8(n), []byte("\x00"), int64(-1), uint8(n))
		}
	}
	f.Fuzz(func(t *testing.T, table, column uint8, text []byte, number int64, kind uint8) {
		path := filepath.Join(t.TempDir(), "db")
		expect.No(t, os.WriteFile(path, sound, 0o600))
		of := tables[int(table)%len(tables)]
		columns := strings.Split(of.columns, ", ")
		set(t, path, fmt.Sprintf("UPDATE %s SET %s = ?", of.name, columns[int(column)%len(columns)]), text, number, kind)
		_, err := (Format{}).Import(t.Context(), path, func(rec dag.Record) error {
			if rec.Event.EventID != e.EventID {
				t.Fatalf("%s was read", rec.Event.JSON())
			}
			return nil
		})
		expect.Must(t, err == nil || core.AsError(err).Code == core.InvalidInput, "%v", err)
	})
}

// set runs a statement with one value of any type; one that the table refuses
// changes nothing.
func set(t *testing.T, path, line string, text []byte, number int64, kind uint8) {
	t.Helper()
	db := expect.Of(sqlite3.Open(path))(t)
	defer func() {
		expect.Is(t, db.Close(), nil)
	}()
	s, _, err := db.Prepare(line)
	expect.No(t, err)
	defer s.Close()
	switch kind % 5 {
	case 0:
		err = s.BindText(1, string(text))
	case 1:
		err = s.BindBlob(1, text)
	case 2:
		err = s.BindInt64(1, number)
	case 3:
		err = s.BindFloat(1, float64(number)/3)
	default:
		err = s.BindNull(1)
	}
	expect.No(t, err)
	_ = s.Exec()
}
