package mcp

import (
	"cmp"
	"context"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

func busTools() []tool {
	sending := []param{
		{name: "payload", kind: object, about: "the message", required: true},
		{name: "ttl", kind: integer, about: "seconds that it is kept for delivery", def: bus.DefaultTTL, min: 1, max: bus.MaxTTL},
		{name: "priority", kind: integer, about: "1 is read first", def: bus.DefaultPriority, min: 1, max: bus.LowestPriority},
	}
	return []tool{
		define("publish_message", "Publish a message", "Publish a message under a topic, for everyone who subscribes to it.", op.Writes, append([]param{
			{name: "topic", kind: text, about: "words with dots between them, such as navigation.complete", required: true, min: 1, max: 200},
		}, sending...), func(ctx context.Context, c *call, in sendArgs) (messageAnswer, error) {
			return send(ctx, c, in, bus.Event)
		}),
		define("send_message", "Send a message", "Send a message to the mailbox of an agent, of controller or system, or of everybody: broadcast.", op.Writes, append([]param{
			{name: "recipient_id", kind: text, about: "an agent's name, controller, system, or broadcast", required: true, min: 1, max: 64},
			{name: "message_type", kind: text, about: "a request expects a response with its correlation_id", def: "event", enum: []string{"event", "request", "response", "error"}},
			{name: "correlation_id", kind: text, about: "conversation that it belongs to, a version 4 UUID", min: 36, max: 36},
		}, sending...), func(ctx context.Context, c *call, in sendArgs) (messageAnswer, error) {
			return send(ctx, c, in, bus.Type(in.MessageType))
		}),
		define("read_messages", "Read messages", "Take messages out of a mailbox, the highest priority first. They don't come again unless peek is true.", op.Writes, []param{
			{name: "recipient_id", kind: text, about: "whose mailbox: an agent reads its own; an operator that of system unless said", min: 1, max: 64},
			{name: "limit", kind: integer, about: "how many at most", def: 20, min: 1, max: core.MaxPageSize},
			{name: "peek", kind: yesNo, about: "only look", def: false},
		}, readMessages),
	}
}

type sendArgs struct {
	Topic         string   `json:"topic"`
	RecipientID   string   `json:"recipient_id"`
	MessageType   string   `json:"message_type"`
	CorrelationID string   `json:"correlation_id"`
	Payload       core.Raw `json:"payload"`
	TTL           int      `json:"ttl"`
	Priority      int      `json:"priority"`
}

type messageAnswer struct {
	Message bus.Message `json:"message"`
}

func send(ctx context.Context, c *call, in sendArgs, kind bus.Type) (messageAnswer, error) {
	s := bus.Send{
		Topic: in.Topic, Recipient: in.RecipientID, Type: kind, Payload: in.Payload,
		TTL: in.TTL, Priority: in.Priority, CorrelationID: in.CorrelationID, Trace: c.trace,
	}
	if c.agent != nil {
		s.Task = c.agent.TaskID
	}
	m, err := c.eng.Bus.Accept(ctx, c.by, s)
	return messageAnswer{m}, err
}

type messagesAnswer struct {
	Messages []bus.Message `json:"messages"`
}

func readMessages(ctx context.Context, c *call, in struct {
	RecipientID string `json:"recipient_id"`
	Limit       int    `json:"limit"`
	Peek        bool   `json:"peek"`
},
) (messagesAnswer, error) {
	whose := bus.System
	if c.agent != nil {
		whose = c.agent.Name
	}
	read := c.eng.Bus.Read
	if in.Peek {
		read = c.eng.Bus.Peek
	}
	all, err := read(ctx, c.by, cmp.Or(in.RecipientID, whose), in.Limit)
	return messagesAnswer{append([]bus.Message{}, all...)}, err
}
