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
	"strings"

	"github.com/ncruces/go-sqlite3"
	_ "github.com/ncruces/go-sqlite3/embed" // the database itself, as wasm

	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/engine/core"
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

// schema is made for reading: ids and enums are columns, what is open is JSON.
const schema = `
CREATE TABLE manifest(format TEXT NOT NULL, version INTEGER NOT NULL, events INTEGER NOT NULL, chain TEXT NOT NULL);
CREATE TABLE events(
	pos INTEGER PRIMARY KEY, seq INTEGER NOT NULL, event_id TEXT NOT NULL, kind TEXT NOT NULL, ts TEXT NOT NULL,
	run_id TEXT, agent_id TEXT, task_id TEXT, session_id TEXT, trace_id TEXT, correlation_id TEXT, parent_id TEXT,
	event TEXT NOT NULL);
CREATE TABLE edges(
	pos INTEGER NOT NULL, i INTEGER NOT NULL, type TEXT NOT NULL, from_type TEXT NOT NULL, from_id TEXT NOT NULL,
	to_type TEXT NOT NULL, to_id TEXT NOT NULL, seq INTEGER, list TEXT, uri TEXT, mount TEXT, mode TEXT,
	valid_from TEXT, valid_to TEXT, PRIMARY KEY(pos, i)) WITHOUT ROWID;
CREATE TABLE nodes(
	pos INTEGER NOT NULL, i INTEGER NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
	valid_from TEXT, valid_to TEXT, node TEXT NOT NULL, PRIMARY KEY(pos, i)) WITHOUT ROWID;
`

// views and indexes come after the rows, which is faster.
const views = `
CREATE UNIQUE INDEX event_by_id ON events(event_id);
CREATE INDEX event_by_run ON events(run_id, seq);
CREATE INDEX event_by_kind ON events(kind, pos);
CREATE INDEX edge_from ON edges(from_type, from_id);
CREATE INDEX edge_to ON edges(to_type, to_id);
CREATE INDEX node_by_id ON nodes(type, id);
CREATE VIEW runs AS
	SELECT run_id, min(agent_id) AS agent_id, count(*) AS events, min(ts) AS started_at, max(ts) AS last_at,
		max(iif(kind = 'run_finished', event ->> 'exit', NULL)) AS exit
	FROM events WHERE run_id IS NOT NULL GROUP BY run_id;
CREATE VIEW calls AS
	SELECT c.run_id, c.agent_id, c.event ->> 'call_id' AS call_id, c.event ->> 'server' AS server, c.event ->> 'tool' AS tool,
		c.event -> 'args' AS args, c.ts AS called_at, r.event ->> 'status' AS status, r.event -> 'result' AS result,
		r.ts AS returned_at, c.event_id AS call_event, r.event_id AS result_event
	FROM events c
	LEFT JOIN edges x ON x.type = 'RETURNS_RESULT' AND x.from_type = 'ToolCall' AND x.from_id = c.event_id
	LEFT JOIN events r ON r.event_id = x.to_id
	WHERE c.kind = 'tool_call';
CREATE VIEW messages AS
	SELECT n.id, n.node ->> 'role' AS role, n.node -> 'content' AS content, n.node ->> 'created_at' AS created_at, e.run_id, e.agent_id, e.event_id
	FROM nodes n JOIN events e USING (pos) WHERE n.type = 'Message';
`

// cell is one value of a row: text, a number, or nothing.
type cell struct {
	text string
	num  uint64
	is   byte // 't', 'n', or 0
}

func text(s string) cell   { return cell{text: s, is: 't'} }
func number(n uint64) cell { return cell{num: n, is: 'n'} }

// maybe is text that may be absent.
func maybe(s string) cell {
	if s == "" {
		return cell{}
	}
	return text(s)
}

func when(t dag.Time) cell {
	if t.IsZero() {
		return cell{}
	}
	return text(t.String())
}

// table is one table with its columns in their order.
type table struct{ name, columns string }

var (
	events = table{"events", "pos, seq, event_id, kind, ts, run_id, agent_id, task_id, session_id, trace_id, correlation_id, parent_id, event"}
	edges  = table{"edges", "pos, i, type, from_type, from_id, to_type, to_id, seq, list, uri, mount, mode, valid_from, valid_to"}
	nodes  = table{"nodes", "pos, i, type, id, valid_from, valid_to, node"}
)

func (t table) width() int { return strings.Count(t.columns, ",") + 1 }

func (t table) insert() string {
	return "INSERT INTO " + t.name + "(" + t.columns + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?,", t.width()), ",") + ")"
}

func (t table) column(i int) string { return strings.Split(t.columns, ", ")[i] }

// eventRow is an event's row.
func eventRow(rec dag.Record) []cell {
	e := rec.Event
	parent := ""
	if e.Parent != nil {
		parent = e.Parent.EventID
	}
	return []cell{
		number(rec.Pos), number(rec.Seq), text(e.EventID), text(string(e.Kind)), text(e.TS.String()),
		maybe(e.RunID), maybe(e.AgentID), maybe(e.TaskID), maybe(e.SessionID), maybe(e.TraceID), maybe(e.CorrelationID), maybe(parent),
		text(string(e.Canonical())),
	}
}

// edgeRow is the row of an event's i-th edge.
func edgeRow(pos uint64, i int, x dag.Edge) []cell {
	seq := cell{}
	if x.Attrs.Seq > 0 {
		seq = number(x.Attrs.Seq)
	}
	return []cell{
		number(pos), number(uint64(i)), text(string(x.Type)), text(string(x.From.Type)), text(x.From.ID), text(string(x.To.Type)), text(x.To.ID),
		seq, maybe(x.Attrs.List), maybe(x.Attrs.URI), maybe(x.Attrs.Mount), maybe(string(x.Attrs.Mode)), when(x.Valid.From), when(x.Valid.To),
	}
}

// asEdge reads an edge's row.
func asEdge(row []cell) (x dag.Edge, err error) {
	x = dag.Edge{
		Type:  dag.EdgeType(row[2].text),
		From:  dag.NodeRef{Type: dag.NodeType(row[3].text), ID: row[4].text},
		To:    dag.NodeRef{Type: dag.NodeType(row[5].text), ID: row[6].text},
		Attrs: dag.Attrs{Seq: row[7].num, List: row[8].text, URI: row[9].text, Mount: row[10].text, Mode: dag.Mode(row[11].text)},
	}
	if row[12].is != 0 {
		if x.Valid.From, err = dag.ParseTime(row[12].text); err != nil {
			return x, err
		}
	}
	if row[13].is != 0 {
		x.Valid.To, err = dag.ParseTime(row[13].text)
	}
	return x, err
}

// nodeRow is the row of the i-th node that an event states.
func nodeRow(pos uint64, i int, n dag.Node) ([]cell, error) {
	data, err := core.Encode(n)
	if err != nil {
		return nil, err
	}
	ref := n.Ref()
	return []cell{number(pos), number(uint64(i)), text(string(ref.Type)), text(ref.ID), when(n.Valid.From), when(n.Valid.To), text(string(data))}, nil
}
