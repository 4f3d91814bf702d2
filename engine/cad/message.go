package cad

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// MessageType is the model's message_type.
type MessageType string

// The types of message.
const (
	Request   MessageType = "request"
	Response  MessageType = "response"
	Broadcast MessageType = "broadcast"
	ErrorNote MessageType = "error"
)

func MessageTypes() []MessageType { return []MessageType{Request, Response, Broadcast, ErrorNote} }

// ToAll is the receiver of a broadcast: every CAD agent of the tenant but the
// sender.
const ToAll = bus.Broadcast

// AgentMessage is one message between agents (model 5, AgentMessage).
type AgentMessage struct {
	MessageID   string      `json:"message_id"` // the bus's
	FromAgentID string      `json:"from_agent_id"`
	ToAgentID   string      `json:"to_agent_id"` // or "broadcast"
	MessageType MessageType `json:"message_type"`
	Content     core.Raw    `json:"content"` // a JSON object; its members depend on the type
	Timestamp   Seconds     `json:"timestamp"`
	Read        bool        `json:"read"` // the receiver has retrieved it

	TraceID       string   `json:"trace_id,omitempty"`
	TaskID        string   `json:"task_id,omitempty"`
	CorrelationID string   `json:"correlation_id,omitempty"` // the bus's, of a request and its response
	Receivers     []string `json:"receivers,omitempty"`      // of a broadcast
}

// SendMessage asks for a message to be sent (controller operation
// send_message).
type SendMessage struct {
	From    string      `json:"from_agent_id"`
	To      string      `json:"to_agent_id"` // an agent, or "broadcast"
	Type    MessageType `json:"message_type" allow:"request, response, broadcast, error"`
	Content core.Raw    `json:"content"`
	Trace   string      `json:"trace_id,omitempty"` // "" takes a fresh one
	Task    string      `json:"task_id,omitempty"`
}

// What the contents of messages say (model 5, Message Type Structures; notes 4).
var (
	requestTypes  = []string{"validate_component", "provide_dimensions", "check_compatibility", "request_rework", "query_status"}
	responseWords = []string{"success", "failure", "partial", "needs_clarification"}
	announcements = []string{"workspace_merge_complete", "component_ready", "task_completed", "error_occurred", "status_update"}
)

// contentRule is what the content of a type of message must have. Other members
// are the senders' own.
type contentRule struct {
	name    string   // of the member
	allowed []string // nil is any text
}

func rulesOf(t MessageType) []contentRule {
	switch t {
	case Request:
		return []contentRule{{"request_type", requestTypes}}
	case Response:
		return []contentRule{{"request_id", nil}, {"status", responseWords}}
	case Broadcast:
		return []contentRule{{"announcement", announcements}}
	}
	codes := namesOf(ErrorCodes(), func(c ErrorCode) ErrorCode { return c })
	return []contentRule{{"error_code", codes}, {"error_message", nil}}
}

// maxContent leaves room for what the bus carries around it.
const maxContent = bus.MaxPayload - 4096

// check reports the first thing wrong with a message by itself.
func (m *SendMessage) check() error {
	if err := bound.Check(m); err != nil {
		return err
	}
	if m.From == "" {
		return core.Invalid("from_agent_id", m.From, "an agent of this tenant")
	}
	switch {
	case m.To == "":
		return core.Invalid("to_agent_id", m.To, `an agent of this tenant, or "broadcast"`)
	case m.Type == Broadcast && m.To != ToAll:
		return core.Invalid("to_agent_id", m.To, `"broadcast" for a message of that type`)
	case (m.Type == Request || m.Type == Response) && m.To == ToAll:
		return core.Invalid("to_agent_id", m.To, "one agent: a "+string(m.Type)+" goes to nobody else")
	case m.To == m.From:
		return core.Invalid("to_agent_id", m.To, "another agent than the sender")
	}
	if err := core.CheckObject("content", m.Content, maxContent); err != nil {
		return err
	}
	for _, rule := range rulesOf(m.Type) {
		if err := rule.check(m.Content); err != nil {
			return err
		}
	}
	return nil
}

func (r contentRule) check(content core.Raw) error {
	field, given := "content."+r.name, memberOf(content, r.name)
	allowed := "a text"
	if len(r.allowed) > 0 {
		allowed = strings.Join(r.allowed, ", ")
	}
	if given == nil {
		return core.Errorf(core.InvalidInput, "%s: is missing; allowed: %s", field, allowed).With("field", field).With("allowed", allowed)
	}
	if given.Kind() != jsontext.KindString {
		return core.Invalid(field, core.ClipTo(string(given), 100), allowed)
	}
	word := textOf(content, r.name)
	if word == "" || len(r.allowed) > 0 && !slices.Contains(r.allowed, word) {
		return core.Invalid(field, word, allowed)
	}
	if len(word) > maxWord {
		return core.Invalid(field, fmt.Sprintf("%d bytes", len(word)), fmt.Sprintf("at most %d bytes", maxWord))
	}
	return nil
}

const maxWord = 4096 // bytes of one text that a rule asks for
