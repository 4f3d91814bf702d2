package dag

import (
	"cmp"
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Moment is an event on a timeline, with what it begins or ends. Its JSON is
// the event's in its place with the other fields added.
type Moment struct {
	Recorded
	From   Time   // of an event that ends something (result, response, run_finished): when that began
	Until  Time   // of one that begins something (call, request, run_started): when that ended
	Status string // of what it begins or ends: open, a Call.Status, a response's status or the run's exit
	Tool   string // of a result: what was called
	// Message is the one that the event appends, or that a response gave, as
	// far as the record has it.
	Message *Message

	brief string // of one that was shortened
}

// Brief is what the event says, in a few words. It holds text from outside.
func (m *Moment) Brief() string {
	if m.Event.raw == nil {
		return m.brief
	}
	return m.Event.Brief()
}

// Took is how long what began or ends here lasted, in milliseconds; ok is
// false when it goes on, or the event is neither.
func (m *Moment) Took() (ms int64, ok bool) {
	switch {
	case !m.From.IsZero():
		return max(0, m.Event.TS.at.Sub(m.From.at).Milliseconds()), true
	case !m.Until.IsZero():
		return max(0, m.Until.at.Sub(m.Event.TS.at).Milliseconds()), true
	}
	return 0, false
}

func (m Moment) MarshalJSON() ([]byte, error) {
	if m.Event.raw == nil {
		return nil, core.Errorf(core.Internal, "event %s was shortened and has no JSON", m.Event.EventID)
	}
	more := struct {
		TookMS  *int64   `json:"took_ms,omitzero"`
		Status  string   `json:"status_of,omitempty"`
		Tool    string   `json:"tool_of,omitempty"`
		Message *Message `json:"message,omitzero"`
	}{Status: m.Status, Tool: m.Tool, Message: m.Message}
	if ms, ok := m.Took(); ok {
		more.TookMS = &ms
	}
	extra, err := core.Encode(more)
	b := m.json(m.Event.raw)
	if err != nil || len(extra) == len("{}") {
		return b, err
	}
	return append(append(b[:len(b)-1], ','), extra[1:]...), nil
}

// Subject narrows a query to what a timeline is of: run:ID, task:ID,
// agent:NAME or session:ID.
func (q *Query) Subject(name string) error {
	kind, id, _ := strings.Cut(name, ":")
	to := map[string]*string{"run": &q.Run, "task": &q.Task, "agent": &q.Agent, "session": &q.Session}[kind]
	if to == nil || id == "" {
		return core.Invalid("subject", name, "run:ID, task:ID, agent:NAME, session:ID")
	}
	*to = id
	return nil
}

// Subject narrows a query as Query.Subject does; the bare name of an agent
// stands for the run in which something happened to it last.
func (d *DAG) Subject(ctx context.Context, tenant, name string, q *Query) error {
	if name == "" || strings.Contains(name, ":") {
		return q.Subject(name)
	}
	err := d.view(ctx, tenant, "look for the newest run of "+name, func(r reader) (err error) {
		q.Run, err = r.newestRun(name)
		return err
	})
	if err == nil && q.Run == "" {
		err = core.Invalid("subject", name, "run:ID, task:ID, agent:NAME, session:ID, or the name of an agent that has run")
	}
	return err
}

// newestRun is the run of an agent's newest event that is of one; "" when none
// of a slice of its newest is.
func (r reader) newestRun(agent string) (run string, err error) {
	l, err := r.of(typeCode(TypeAgent), agent)
	if err != nil {
		return "", err
	}
	for skip := uint64(0); skip < min(l.n, slice) && run == "" && err == nil; skip++ {
		err = r.walk(l, false, skip, 1, func(e Recorded) error {
			run = e.Event.RunID
			return nil
		})
	}
	return run, err
}

// routine reports bookkeeping: what an agent has spent so far, which its end sums up, and
// that a resource is still there.
func (e *Event) routine() bool {
	switch b := e.Body.(type) {
	case *HistoryAppend:
		return b.List == ListUsage
	case *LivenessProbe:
		return b.Status == Alive
	}
	return false
}

// Timeline lists the events of a run, task, agent or session, the oldest
// first, each with what it begins or ends: without bookkeeping, unless all are asked
// for or one kind. A page costs the same wherever it
// stands and however long the record is, unless more narrows it.
func (d *DAG) Timeline(ctx context.Context, tenant string, q Query) (core.Page[Moment], error) {
	q.Forward, q.told = true, !q.All && q.Kind == ""
	return list(ctx, d, tenant, q, reader.lists, nil, func(r reader, e Recorded) (Moment, error) {
		m, err := r.moment(e)
		if q.Short {
			m.shorten()
		}
		return m, err
	})
}

// moment looks for the other end of what an event begins or ends.
func (r reader) moment(e Recorded) (Moment, error) {
	m := Moment{Recorded: e}
	var err error
	switch b := e.Event.Body.(type) {
	case *ToolCall:
		var c Call
		c, err = r.call(e)
		m.Until, m.Status = c.ReturnedAt, c.Status
	case *ToolResult:
		m.Status = string(b.Status)
		err = r.called(&m, b.CallID)
	case *ModelRequest:
		err = r.answered(&m)
	case *ModelResponse:
		m.Status = string(cmp.Or(b.Status, CallOK))
		if m.Message, err = r.message(&e.Event, b.OutputRef); err == nil {
			err = r.requested(&m)
		}
	case *HistoryAppend:
		m.Message, err = r.message(&e.Event, b.MessageRef)
	case *RunStarted, *RunFinished:
		err = r.lasted(&m)
	}
	return m, err
}

// message is the one of an id, which the event that names it mostly states.
func (r reader) message(e *Event, id string) (*Message, error) {
	if m := e.states(id); m != nil {
		return m, nil
	}
	v, err := r.newest(NodeRef{TypeMessage, id})
	if err != nil || v == nil {
		return nil, err
	}
	return v.Node.Body.(*Message), nil
}

// called finds the call that a result ends: the newest of its id before it.
func (r reader) called(m *Moment, call string) error {
	stream, _, err := r.num(nameKey(NodeRef{TypeRun, m.Event.RunID}))
	if err != nil {
		return err
	}
	prefix, looked := record.Seq(stream).Text(call), 0
	return callIDs.Within(r, prefix, nil, record.Seq(m.Pos), true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		if looked++; kindOf(found) != KindToolCall.code() {
			return looked < maxBack, nil
		}
		e, err := r.event(rest.Seq())
		if err == nil {
			m.From, m.Tool = e.Event.TS, e.Event.Body.(*ToolCall).Tool
		}
		return false, err
	})
}

// answered finds the first response to a request.
func (r reader) answered(m *Moment) error {
	m.Status = callOpen
	num, _, err := r.place(m.Event.EventID)
	if err != nil {
		return err
	}
	looked := 0
	return inEdges.Within(r, record.Seq(num).Byte(relationCode(DerivedFrom)), nil, nil, false, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
		e, err := r.event(rest.Seq())
		if err != nil {
			return false, err
		}
		if _, ok := e.Event.Body.(*ModelResponse); !ok {
			looked++
			return looked < maxShown, nil
		}
		m.Until, m.Status = e.Event.TS, cmp.Or(status(&e.Event), string(CallOK))
		return false, nil
	})
}

// requested finds the request that a response answers.
func (r reader) requested(m *Moment) error {
	edges, err := r.edges(m.Pos)
	if err != nil {
		return err
	}
	for _, x := range edges {
		if x.Type != DerivedFrom || x.From.Type != TypeGeneration || x.From.ID != m.Event.EventID {
			continue
		}
		if _, pos, err := r.place(x.To.ID); err != nil || pos == 0 {
			return err
		} else if e, err := r.event(pos); err != nil {
			return err
		} else if _, ok := e.Event.Body.(*ModelRequest); ok {
			m.From = e.Event.TS
		}
		return nil
	}
	return nil
}

// lasted finds a run's other end.
func (r reader) lasted(m *Moment) error {
	_, h, err := r.run(m.Event.RunID)
	if err != nil {
		return err
	}
	m.Status = cmp.Or(h.Exit, h.Status)
	if m.Event.Kind == KindRunFinished {
		m.From = h.StartedAt
	} else {
		m.Until = h.FinishedAt
	}
	return nil
}
