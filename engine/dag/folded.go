package dag

import (
	"swarmdeck/engine/core"
)

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
