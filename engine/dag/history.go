package dag

import (
	"cmp"
	"context"
	"errors"
	"strings"

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

	All bool // of a timeline: with the bookkeeping

	told     bool   // without it
	returned string // what came of a tool call
}

// lists are those that have all the events of a query in them, the shortest
// first, and clears what they cover. Of kinds it clears that alone which the
// first covers.
func (r reader) lists(q *Query) (all []listed, err error) {
	add := func(l listed, bad error) {
		all = append(all, l)
		err = errors.Join(err, bad)
	}
	if q.Run != "" {
		add(r.ofRun(q.Run))
	}
	if q.Correlation != "" {
		under := record.Text(q.Correlation)
		n, err := r.last(correlated, under)
		add(listed{correlated, under, n}, err)
	}
	if q.Task != "" {
		add(r.of(nameTask, q.Task))
	}
	if q.Session != "" {
		add(r.of(nameSession, q.Session))
	}
	if q.Agent != "" && !strings.Contains(q.Agent, ",") {
		add(r.of(typeCode(TypeAgent), q.Agent))
		q.Agent = ""
	}
	q.Run, q.Correlation, q.Task, q.Session = "", "", "", ""
	core.Sort(all, func(a, b listed) int { return cmp.Compare(a.n, b.n) })
	if q.Kind != "" {
		l, err := r.ofKind(Kind(q.Kind))
		if err != nil {
			return nil, err
		}
		if len(all) == 0 || l.n < all[0].n {
			all = append([]listed{l}, all...)
			q.Kind = ""
		}
	}
	if len(all) == 0 {
		all = []listed{{n: uint64(r.Counter(countEvents))}}
	}
	return all, err
}

// ofKind is the list of the events of a kind.
func (r reader) ofKind(k Kind) (listed, error) {
	code := record.Key{k.code()}
	n, err := r.last(kinds, code)
	return listed{kinds, code, n}, err
}

// Events lists events: those of a run in their order, all others newest first.
// With one of run, correlation, task, session, agent or kind alone, or nothing, a
// page costs the same wherever it stands; otherwise what has them all is found by
// their lists and by columns. f.Match looks at the event's JSON, f.Trace at its
// trace_id; f.Status at the status, outcome or exit that it tells.
func (d *DAG) Events(ctx context.Context, tenant string, q Query) (core.Page[Recorded], error) {
	return list(ctx, d, tenant, q, reader.lists, nil, func(_ reader, e Recorded) (Recorded, error) { return e, nil })
}

// match holds an event against what no list covers.
func (q *Query) match(e *Event) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	return same(q.Run, e.RunID) && same(q.Task, e.TaskID) && same(q.Session, e.SessionID) && core.Wants(q.Agent, e.AgentID) &&
		same(q.Kind, string(e.Kind)) && same(q.Trace, e.TraceID) && same(q.Correlation, e.CorrelationID) &&
		same(q.Status, status(e)) && q.Within(e.TS.at) && !(q.told && e.routine())
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
