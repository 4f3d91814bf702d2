package dag

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Bounds of what a stream's state holds, so that it stays small however long
// the stream is.
const (
	maxOpenCalls = 64
	maxLists     = 16
	markEvery    = 16 // a state is kept each so many events, to be folded on from
)

// RunState is what the events of a stream up to one of them come to.
type RunState struct {
	RunID     string `json:"run_id,omitempty"` // "" for events outside any run
	AgentID   string `json:"agent_id,omitempty"`
	TaskID    string `json:"task_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	TraceID   string `json:"trace_id,omitempty"`

	Status     string `json:"status"` // open, running, finished
	Reason     string `json:"reason,omitempty"`
	Exit       string `json:"exit,omitempty"`
	Events     uint64 `json:"events"`
	Head       string `json:"head"` // the newest event
	StartedAt  Time   `json:"started_at"`
	LastAt     Time   `json:"last_at"`
	FinishedAt Time   `json:"finished_at,omitzero"`

	Kinds       map[Kind]int64   `json:"kinds"`
	Lists       map[string]int64 `json:"lists,omitempty"` // messages by list, of the first 16 lists
	LastMessage string           `json:"last_message_ref,omitempty"`
	Model       string           `json:"model,omitempty"`
	Usage       Usage            `json:"usage,omitzero"`

	OpenCalls    []OpenCall  `json:"open_calls,omitempty"`         // the oldest 64
	OpenUnlisted int64       `json:"open_calls_unlisted,omitzero"` // calls that did not fit there
	OpenModels   []OpenModel `json:"open_models,omitempty"`        // the oldest 64
	LastResult   CallStatus  `json:"last_result,omitempty"`
	Interrupted  Reason      `json:"interrupted,omitempty"` // the newest interruption
	Policy       string      `json:"policy_ref,omitempty"`  // the newest that was activated here
}

// OpenCall is a tool call without its result.
type OpenCall struct {
	CallID  string `json:"call_id"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	EventID string `json:"event_id"`
	TS      Time   `json:"ts"`
}

// OpenModel is a request to a model without its answer.
type OpenModel struct {
	EventID       string `json:"event_id"`
	CorrelationID string `json:"correlation_id"`
	Model         string `json:"model"`
	TS            Time   `json:"ts"`
}

// fold takes the stream's next event in.
func (s *RunState) fold(e *Event) {
	s.Events++
	if s.Events == 1 {
		s.RunID, s.StartedAt, s.Status, s.Kinds = e.RunID, e.TS, "open", map[Kind]int64{}
	}
	for _, id := range []struct {
		to   *string
		from string
	}{{&s.AgentID, e.AgentID}, {&s.TaskID, e.TaskID}, {&s.SessionID, e.SessionID}, {&s.TraceID, e.TraceID}} {
		if *id.to == "" {
			*id.to = id.from
		}
	}
	s.Head, s.LastAt = e.EventID, e.TS
	s.Kinds[e.Kind]++
	switch b := e.Body.(type) {
	case *RunStarted:
		s.Status, s.Reason, s.StartedAt = "running", b.Reason, e.TS
	case *RunFinished:
		s.Status, s.Exit, s.FinishedAt = "finished", b.Exit, e.TS
	case *ModelRequest:
		s.Model = b.Model
		if len(s.OpenModels) < maxOpenCalls {
			s.OpenModels = append(s.OpenModels, OpenModel{e.EventID, e.CorrelationID, b.Model, e.TS})
		}
	case *ModelResponse:
		if i := s.asked(b.RequestID, e.CorrelationID); i >= 0 {
			s.OpenModels = slices.Delete(s.OpenModels, i, i+1)
		}
		s.Usage.add(b.Usage)
	case *HistoryAppend:
		s.append(b)
	case *ToolCall:
		s.call(e, b)
	case *ToolResult:
		s.result(b)
	case *Interruption:
		s.Interrupted = b.Reason
	case *PolicyActivated:
		s.Policy = b.PolicyRef
	}
}

func (s *RunState) append(b *HistoryAppend) {
	s.LastMessage = b.MessageRef
	if s.Lists == nil {
		s.Lists = map[string]int64{}
	}
	if _, known := s.Lists[b.List]; known || len(s.Lists) < maxLists {
		s.Lists[b.List]++
	}
}

// call opens a call. One of the same id takes the place of the one before it.
func (s *RunState) call(e *Event, b *ToolCall) {
	open := OpenCall{b.CallID, b.Server, b.Tool, e.EventID, e.TS}
	if i := s.open(b.CallID); i >= 0 {
		s.OpenCalls[i] = open
	} else if len(s.OpenCalls) < maxOpenCalls {
		s.OpenCalls = append(s.OpenCalls, open)
	} else {
		s.OpenUnlisted++
	}
}

func (s *RunState) result(b *ToolResult) {
	s.LastResult = b.Status
	if i := s.open(b.CallID); i >= 0 {
		s.OpenCalls = slices.Delete(s.OpenCalls, i, i+1)
	} else if s.OpenUnlisted > 0 {
		s.OpenUnlisted--
	}
}

// asked finds the open request that an answer is to: the one it names, else
// the newest of its correlation.
func (s *RunState) asked(request, correlation string) int {
	found := -1
	for i, o := range s.OpenModels {
		if o.EventID == request {
			return i
		}
		if correlation != "" && o.CorrelationID == correlation {
			found = i
		}
	}
	return found
}

func (s *RunState) open(call string) int {
	return slices.IndexFunc(s.OpenCalls, func(c OpenCall) bool { return c.CallID == call })
}

// head is a stream's state with what keeps it sound.
type head struct {
	RunState `json:",embed"`
	Stream   string `json:"stream"`        // run:ID, agent:ID or tenant
	Chain    string `json:"chain"`         // sha256 over the chain before and the event's id, hex
	LastPos  uint64 `json:"pos,omitempty"` // of the newest event
	Told     uint64 `json:"told"`          // events that are no bookkeeping
}

// extend takes the next event in.
func (h *head) extend(e *Event, pos uint64) {
	h.fold(e)
	before, _ := hex.DecodeString(h.Chain) // our own
	sum := sha256.Sum256(append(before, e.id[:]...))
	h.Chain, h.LastPos = hex.EncodeToString(sum[:]), pos
}

// streamOf is the stream of an event: its key in names, and its name.
func streamOf(e *Event) (k record.Key, name string) {
	switch {
	case e.RunID != "":
		return nameKey(NodeRef{TypeRun, e.RunID}), "run:" + e.RunID
	case e.AgentID != "":
		return nameKey(NodeRef{TypeAgent, e.AgentID}), "agent:" + e.AgentID
	}
	return record.Key{nameTenant}, "tenant"
}

// head reads a stream's head; a new one for a stream without events.
func (r reader) head(num uint64) (*head, error) {
	h, _, err := heads.Get(r, record.Seq(num))
	return &h, err
}

// run finds a run by its id: its num, 0 when nothing names it, and its head,
// which is empty then.
func (r reader) run(id string) (uint64, *head, error) {
	num, _, err := r.num(nameKey(NodeRef{TypeRun, id}))
	if err != nil || num == 0 {
		return 0, &head{}, err
	}
	h, err := r.head(num)
	return num, h, err
}

// foldedEvent is what fold reads of an event. Decoding just that of a stored event, in
// one pass and without its nodes, edges and payloads, is what makes states as
// of long ago cheap.
type foldedEvent struct {
	Kind          Kind         `json:"kind"`
	TS            Time         `json:"ts"`
	RunID         string       `json:"run_id"`
	AgentID       string       `json:"agent_id"`
	CorrelationID string       `json:"correlation_id"`
	TaskID        string       `json:"task_id"`
	SessionID     string       `json:"session_id"`
	TraceID       string       `json:"trace_id"`
	Erased        *core.Erased `json:"erased"`

	Reason     string     `json:"reason"`      // run_started, interruption
	Exit       string     `json:"exit"`        // run_finished
	Model      string     `json:"model"`       // model_request
	RequestID  string     `json:"request_id"`  // model_response
	Usage      *Usage     `json:"usage"`       // model_response
	List       string     `json:"list"`        // history_append
	MessageRef string     `json:"message_ref"` // history_append
	Server     string     `json:"server"`      // tool_call
	Tool       string     `json:"tool"`        // tool_call
	CallID     string     `json:"call_id"`     // tool_call, tool_result
	Status     CallStatus `json:"status"`      // tool_result
	PolicyRef  string     `json:"policy_ref"`  // policy_activated
}

// folded decodes a row as far as fold looks at it.
func (w row) folded() (Event, error) {
	var g foldedEvent
	if w.unread != nil {
		return Event{}, w.unread
	}
	if err := core.DecodeStored(w.raw, &g); err != nil {
		return Event{}, damaged(w.pos, err)
	}
	e := Event{Body: g.body(), raw: w.raw, Head: Head{
		Kind: g.Kind, TS: g.TS, RunID: g.RunID, AgentID: g.AgentID, CorrelationID: g.CorrelationID,
		TaskID: g.TaskID, SessionID: g.SessionID, TraceID: g.TraceID, Erased: g.Erased,
	}}
	e.identify()
	return e, nil
}

// body is the part of the event's fields that fold looks at; nil of a kind
// that it has no look into.
func (g *foldedEvent) body() Body {
	switch g.Kind {
	case KindRunStarted:
		return &RunStarted{Reason: g.Reason}
	case KindRunFinished:
		return &RunFinished{Exit: g.Exit}
	case KindModelRequest:
		return &ModelRequest{Model: g.Model}
	case KindModelResponse:
		return &ModelResponse{RequestID: g.RequestID, Usage: g.Usage}
	case KindHistoryAppend:
		return &HistoryAppend{List: g.List, MessageRef: g.MessageRef}
	case KindToolCall:
		return &ToolCall{Server: g.Server, Tool: g.Tool, CallID: g.CallID}
	case KindToolResult:
		return &ToolResult{CallID: g.CallID, Status: g.Status}
	case KindInterruption:
		return &Interruption{Reason: Reason(g.Reason)}
	case KindPolicyActivated:
		return &PolicyActivated{PolicyRef: g.PolicyRef}
	}
	return nil
}
