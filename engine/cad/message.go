package cad

import (
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// MessageType is the seed's message_type.
type MessageType string

// The types of message.
const (
	Request   MessageType = "request"
	Response  MessageType = "response"
	Broadcast MessageType = "broadcast"
	ErrorNote MessageType = "error"
)

// MessageTypes are all of them.
func MessageTypes() []MessageType { return []MessageType{Request, Response, Broadcast, ErrorNote} }

// ToAll is the receiver of a broadcast: every CAD agent of the tenant but the
// sender.
const ToAll = bus.Broadcast

// AgentMessage is one message between agents (seed 5, AgentMessage).
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
	Type    MessageType `json:"message_type"`
	Content core.Raw    `json:"content"`
	Trace   string      `json:"trace_id,omitempty"` // "" takes a fresh one
	Task    string      `json:"task_id,omitempty"`
}
