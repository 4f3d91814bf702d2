package dag

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// Head is what events of all kinds have. Which of run_id and agent_id one
// needs follows from its kind.
type Head struct {
	Kind          Kind      `json:"kind"`
	EventID       string    `json:"event_id,omitempty"`
	TS            Time      `json:"ts"`
	RunID         string    `json:"run_id,omitempty"`
	AgentID       string    `json:"agent_id,omitempty"`
	Parent        *EventRef `json:"parent,omitzero"` // the event before it, where its emitter knows
	CorrelationID string    `json:"correlation_id,omitempty"`
	TaskID        string    `json:"task_id,omitempty"`
	SessionID     string    `json:"session_id,omitempty"`
	TraceID       string    `json:"trace_id,omitempty"`
	Nodes         []Node    `json:"nodes,omitempty"` // that it introduces, or states anew
	Edges         []Edge    `json:"edges,omitempty"` // beyond those that follow from its kind
	// Erased tells of an event whose content was erased: its sha256 is the id
	// that the whole event had, and has.
	Erased *core.Erased `json:"erased,omitzero"`
}

// Body are the fields of one kind, for example *ToolCall.
type Body interface{ Kind() Kind }

// Event is one immutable fact. It is made by Parse or NewEvent and must not be
// modified.
type Event struct {
	Head
	Body Body

	raw core.Raw // canonical, without event_id
	id  [32]byte
}

// bodies are the fields of each kind, in the model's order. A kind's place in this list
// is part of what is stored: new ones come at the end.
var bodies = []Body{
	new(ModelRequest), new(ModelResponse), new(HistoryAppend), new(ToolCall), new(ToolResult), new(MCPResourceUpdated),
	new(MCPListChanged), new(PolicyActivated), new(Interruption), new(Substitution), new(AgentForked), new(RunStarted),
	new(RunFinished), new(SnapshotMaterialized),
	new(SnapshotCreated), new(ResourceAttached), new(ResourceDetached), new(LivenessProbe), new(RestoreAttempted),
}

// needs says whether events of a kind must have a run and an agent, by the model's lists
// of fields.
func needs(k Kind) (run, agent bool) {
	switch k {
	case KindSnapshotCreated, KindRestoreAttempted, KindAgentForked, KindPolicyActivated, KindResourceAttached, KindResourceDetached:
		return false, true
	case KindLivenessProbe:
		return false, false
	}
	return true, true
}

// Kinds are all kinds in the model's order.
func Kinds() []Kind { return core.Map(bodies, Body.Kind) }

// code is a kind's number in keys, from 1; 0 of one that is not known.
func (k Kind) code() byte {
	return byte(slices.IndexFunc(bodies, func(b Body) bool { return b.Kind() == k }) + 1)
}

// newBody makes the empty body of a kind; nil for a kind that is not known.
func newBody(k Kind) Body {
	if k.code() == 0 {
		return nil
	}
	return emptyLike(bodies[k.code()-1])
}

// emptyLike makes what a pointer like this points to.
func emptyLike[T any](like T) T { return reflect.New(reflect.TypeOf(like).Elem()).Interface().(T) }

// NewEvent makes an event out of its parts. The head's Kind is the body's, and
// its EventID follows from the rest.
func NewEvent(head Head, body Body) (Event, error) {
	head.Kind, head.EventID = body.Kind(), ""
	data, err := encode(head, body)
	if err != nil {
		return Event{}, fmt.Errorf("encode a %s: %w", head.Kind, err)
	}
	return Parse(data)
}

// encode is the JSON of an event out of its parts.
func encode(head Head, body Body) ([]byte, error) {
	rest, err := core.Encode(body)
	if err != nil {
		return nil, err
	}
	return core.Encode(struct {
		Head `json:",embed"`
		Body core.Raw `json:",embed"`
	}{head, rest})
}

// Parse reads an event from JSON and checks it: fields, references, enums and
// what the model demands of one event by itself. Every mistake is named. An
// event_id that is given must be the one that the event has; a number that
// RFC 8785 can't carry exactly is refused.
func Parse(data []byte) (Event, error) {
	e, err := parse(data)
	if err == nil && e.Erased != nil {
		return Event{}, core.Errorf(core.InvalidInput, "erased: only an import brings events whose content was erased").With("field", "erased")
	}
	return e, err
}

// parse is Parse, of events too whose content was erased.
func parse(data []byte) (Event, error) {
	e, given, err := decode(data)
	if err != nil {
		return Event{}, err
	}
	if err := e.check(); err != nil {
		return Event{}, err
	}
	if err := core.CheckExact(data); err != nil {
		return Event{}, err
	}
	if e.raw, err = core.Canonical(data); err != nil {
		return Event{}, err
	}
	if given != "" {
		if e.raw, err = without(e.raw, "event_id"); err != nil {
			return Event{}, err
		}
	} else {
		e.raw = bytes.Clone(e.raw) // may be the caller's own bytes
	}
	e.identify()
	if given != "" && given != e.EventID {
		return Event{}, core.Errorf(core.InvalidInput, "event_id: %q is not the id of this event, which is %s; it was changed after it got its id",
			core.Clip(given), e.EventID).With("field", "event_id").With("value", core.Clip(given)).With("event_id", e.EventID)
	}
	return e, nil
}

// identify gives the event the id that follows from its canonical JSON.
func (e *Event) identify() {
	if e.Erased != nil {
		raw, _ := hex.DecodeString(e.Erased.SHA256) // its form was checked
		copy(e.id[:], raw)
	} else {
		e.id = sha256.Sum256(e.raw)
	}
	e.EventID = hex.EncodeToString(e.id[:])
}

// decode reads an event's fields without a look at what they say.
func decode(data []byte) (e Event, given string, err error) {
	if err := core.CheckObject("event", data, MaxEvent); err != nil {
		return e, "", err
	}
	var in struct {
		Head `json:",embed"`
		Rest core.Raw `json:",embed"`
	}
	if err := core.Decode(data, &in); err != nil {
		return e, "", err
	}
	e.Head, given = in.Head, in.EventID
	if e.Body = newBody(e.Kind); e.Body == nil {
		f := &problems{}
		oneOf(f, "kind", e.Kind, Kinds()...)
		return e, "", f.err()
	}
	if len(in.Rest) == 0 {
		return e, given, nil
	}
	return e, given, core.Decode(in.Rest, e.Body)
}

func (e *Event) check() error {
	f := &problems{}
	if e.TS.IsZero() {
		f.add("ts", "missing; a UTC time such as 2026-01-02T15:04:05.678Z")
	}
	run, agent := needs(e.Kind)
	f.nameIf(run, "run_id", e.RunID)
	f.nameIf(agent, "agent_id", e.AgentID)
	if e.Parent != nil {
		f.eventID("parent.event_id", e.Parent.EventID)
	}
	f.nameIf(e.Kind == KindModelRequest, "correlation_id", e.CorrelationID)
	f.optional("task_id", e.TaskID)
	f.optional("session_id", e.SessionID)
	f.optional("trace_id", e.TraceID)
	if e.Erased != nil {
		f.eventID("erased.sha256", e.Erased.SHA256)
		f.atLeast0("erased.bytes", e.Erased.Bytes)
	}
	f.members(e.Body)
	e.checkGraph(f)
	return f.err()
}

// checkGraph looks at the nodes and edges that an event carries.
func (e *Event) checkGraph(f *problems) {
	if !f.count("nodes", len(e.Nodes), maxNodes) || !f.count("edges", len(e.Edges), maxEdges) {
		return
	}
	stated := map[NodeRef]bool{}
	for i, n := range e.Nodes {
		f.within(fmt.Sprintf("nodes[%d]", i), func() {
			n.check(f, e.TS)
			if ref := n.Ref(); stated[ref] && ref.ID != "" {
				f.add("id", "%q is stated twice", core.Clip(ref.ID))
			} else {
				stated[ref] = true
			}
		})
	}
	for i, edge := range e.Edges {
		f.within(fmt.Sprintf("edges[%d]", i), func() { edge.check(f, e.TS) })
	}
}

// without removes a top-level member from canonical JSON.
func without(object core.Raw, member string) (core.Raw, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	for dec.PeekKind() != '}' {
		start := dec.InputOffset()
		name, err := dec.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		found := name.String() == member
		if err := dec.SkipValue(); err != nil {
			return nil, fmt.Errorf("read an event: %w", err)
		}
		if !found {
			continue
		}
		// The offset before a member is that after the one before it: a comma
		// stands there, or the brace.
		end := dec.InputOffset()
		if object[start] == '{' || start == 1 {
			start = 1
			if object[end] == ',' {
				end++
			}
		}
		return append(append(make(core.Raw, 0, len(object)), object[:start]...), object[end:]...), nil
	}
	return bytes.Clone(object), nil
}

// JSON is the event with its event_id, as one line.
func (e Event) JSON() core.Raw {
	const head = `{"event_id":"`
	out := make(core.Raw, 0, len(e.raw)+len(head)+66)
	out = append(append(append(out, head...), e.EventID...), `",`...)
	return append(out, e.raw[1:]...)
}

func (e Event) MarshalJSON() ([]byte, error) { return e.JSON(), nil }

func (e *Event) UnmarshalJSON(data []byte) (err error) {
	*e, err = Parse(data)
	return err
}

// Canonical is the RFC 8785 form whose sha256 is the event's id.
func (e Event) Canonical() core.Raw { return e.raw }
