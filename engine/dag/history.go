package dag

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Query narrows a list of events.
type Query struct {
	core.Filter
	Run         string
	Correlation string
	Forward     bool // the oldest first, as those of a run always are
	Short       bool // of a timeline: only what rows show, which can't be written as JSON
}

// narrowest picks the list to walk for a query, and clears what it covers.
func (r reader) narrowest(q *Query) (l listed, err error) {
	switch {
	case q.Run != "":
		l, err = r.ofRun(q.Run)
		q.Run = ""
	case q.Correlation != "":
		under := record.Text(q.Correlation)
		l = listed{rows: correlated, under: under}
		l.n, err = r.last(correlated, under)
		q.Correlation = ""
	case q.Task != "":
		l, err = r.of(nameTask, q.Task)
		q.Task = ""
	case q.Session != "":
		l, err = r.of(nameSession, q.Session)
		q.Session = ""
	case q.Agent != "":
		l, err = r.of(typeCode(TypeAgent), q.Agent)
		q.Agent = ""
	case q.Kind != "":
		code := record.Key{Kind(q.Kind).code()}
		l = listed{rows: kinds, under: code}
		l.n, err = r.last(kinds, code)
		q.Kind = ""
	default:
		l.n = uint64(r.Counter(countEvents))
	}
	return l, err
}

// Events lists events: those of a run in their order, all others newest first.
// With one of run, correlation, task, session, agent or kind alone, or nothing, a page
// costs the same wherever it stands; otherwise the narrowest of them is read
// through. f.Match looks at the event's JSON, f.Trace at its trace_id; f.Status
// at the status, outcome or exit that it tells.
func (d *DAG) Events(ctx context.Context, tenant string, q Query) (core.Page[Recorded], error) {
	var none core.Page[Recorded]
	f, err := q.Check()
	if err != nil {
		return none, err
	}
	q.Filter = f
	if q.Kind != "" && newBody(Kind(q.Kind)) == nil {
		return none, core.Invalid("kind", q.Kind, words(Kinds()))
	}
	return list(ctx, d, tenant, q, reader.narrowest, nil, func(_ reader, e Recorded) (Recorded, error) { return e, nil })
}

// needles are what the JSON of every event that matches has in it: most that
// don't match are left out without decoding them.
func (q *Query) needles() (all [][]byte) {
	for member, value := range map[string]string{
		"kind": q.Kind, "run_id": q.Run, "task_id": q.Task, "session_id": q.Session, "agent_id": q.Agent, "trace_id": q.Trace,
		"correlation_id": q.Correlation,
	} {
		if value == "" {
			continue
		}
		if quoted, err := jsontext.AppendQuote([]byte(`"`+member+`":`), value); err == nil {
			all = append(all, quoted)
		}
	}
	return all
}

func contains(raw []byte, needles [][]byte) bool {
	return !slices.ContainsFunc(needles, func(n []byte) bool { return !bytes.Contains(raw, n) })
}

// match holds an event against what no list covers.
func (q *Query) match(e *Event) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(q.Run, e.RunID) && same(q.Task, e.TaskID) && same(q.Session, e.SessionID) && same(q.Agent, e.AgentID) &&
		same(q.Kind, string(e.Kind)) && same(q.Trace, e.TraceID) && same(q.Correlation, e.CorrelationID) &&
		same(q.Status, status(e)) &&
		q.Within(e.TS.at) &&
		(q.Match == "" || strings.Contains(strings.ToLower(string(e.raw)), strings.ToLower(q.Match)))
}

// status is what an event says of how something ended or stands.
func status(e *Event) string {
	switch b := e.Body.(type) {
	case *ModelResponse:
		return string(b.Status)
	case *ToolResult:
		return string(b.Status)
	case *SnapshotCreated:
		return string(b.Outcome)
	case *RestoreAttempted:
		return string(b.Outcome)
	case *LivenessProbe:
		return string(b.Status)
	case *RunFinished:
		return b.Exit
	}
	return ""
}

// Get returns one event with its edges.
func (d *DAG) Get(ctx context.Context, tenant, id string) (Detail, error) {
	var out Detail
	err := d.view(ctx, tenant, "read an event", func(r reader) (err error) {
		out, err = r.detail(id)
		return err
	})
	return out, err
}

func (r reader) detail(id string) (Detail, error) {
	pos, err := r.pos(id)
	if err != nil {
		return Detail{}, err
	}
	return r.detailAt(pos)
}

func (r reader) detailAt(pos uint64) (Detail, error) {
	e, err := r.event(pos)
	if err != nil {
		return Detail{}, err
	}
	edges, err := r.edges(pos)
	if err != nil {
		return Detail{}, err
	}
	if run := e.Event.RunID; run != "" {
		edges = append(edges, Edge{Type: RunHasEvent, From: NodeRef{TypeRun, run}, To: NodeRef{TypeEvent, e.Event.EventID}, Attrs: Attrs{Seq: e.Seq}})
	}
	return Detail{e, edges}, nil
}

// Run is the state of a run as it is now.
func (d *DAG) Run(ctx context.Context, tenant, run string) (RunState, error) {
	var s RunState
	err := d.view(ctx, tenant, "read a run", func(r reader) error {
		_, h, err := r.run(run)
		if err == nil && h.Events == 0 {
			err = core.Missing("run", run)
		}
		s = h.RunState
		return err
	})
	return s, err
}

// GetIn is Get inside a transaction, without the edges.
func (d *DAG) GetIn(tx store.Tx, id string) (Recorded, error) {
	r := reader{tx}
	pos, err := r.pos(id)
	if err != nil {
		return Recorded{}, err
	}
	return r.event(pos)
}

// pos is where an event is that must be here.
func (r reader) pos(id string) (uint64, error) {
	_, pos, err := r.place(id)
	if err == nil && pos == 0 {
		err = core.Missing("event", id)
	}
	return pos, err
}
