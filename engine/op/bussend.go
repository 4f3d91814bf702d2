package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// sending is a message with the parameters that it is made of.
type sending struct {
	bus.Send
	ttl Seconds
}

// sends makes an operation that sends a message; to is where it goes.
func sends(o Op, m *sending, to *Param, send func(ctx context.Context, c *Call) (bus.Message, error)) *Op {
	m.Priority, m.ttl = bus.DefaultPriority, bus.DefaultTTL
	// An agent sends in its own name, about the task that it works on.
	o.Tool.Names = map[string]string{
		"agent": "recipient_id", "type": "message_type", "correlation": "correlation_id", "from": "-", "trace": "-", "task": "-",
	}
	o.Request = &m.Send
	o.Params = append([]*Param{
		to,
		payload(&m.Payload),
		flag(&m.Sender, "from", "send as this agent `NAME` (default system)").from("agent"),
		flag(&m.ttl, "ttl", "keep it for delivery so long: `SECONDS` or a duration").fills(&m.TTL).client("seconds that it is kept for delivery"),
		flag(&m.Priority, "priority", "`N`").client("1 is read first"),
		flag(&m.CorrelationID, "correlation", "conversation `ID`, a version 4 UUID").bounds(36, 36).client("conversation that it belongs to, a version 4 UUID"),
		flag(&m.Trace, "trace", "trace `ID`, 32 hex digits (default a new one)"),
		flag(&m.Task, "task", "task `ID` that it belongs to").from("task"),
	}, o.Params...)
	return define(o, func(ctx context.Context, c *Call) (bus.Message, error) {
		m.TTL = int(m.ttl)
		m.Trace, m.Task = cmp.Or(m.Trace, c.traceID()), cmp.Or(m.Task, c.Task)
		return send(ctx, c)
	})
}

// accept sends it.
func (m *sending) accept(ctx context.Context, c *Call) (bus.Message, error) {
	return c.Bus.Accept(ctx, c.By, m.Send)
}

func (m *sending) typed(types ...bus.Type) *Param {
	m.Type = bus.Event
	return flag((*string)(&m.Type), "type", "`TYPE`: "+words("|", types...)).enum(core.Strings(types...)...).
		client("a request expects a response with its correlation_id")
}

// payload is what a message says.
func payload(into *core.Raw) *Param {
	return &Param{Name: "payload", About: "JSON", Client: "the message", Arg: true, Need: true, Into: into, From: "json"}
}

func busPublish() *Op {
	var m sending
	return sends(Op{
		Name: "bus publish", Short: "Publish a message under a topic", Done: "published",
		Long: "Publish a message under a topic, for everyone who subscribes to it. JSON is an object of at most 1 MiB, @file,\n" +
			"or - for stdin. It is on disk when this returns. Topics are words with dots between them; those under sys. are the engine's.",
		Example: `bus publish navigation.complete '{"location":"kitchen"}' --from navigator`,
		Tool:    Tool{Name: "publish_message", About: "Publish a message under a topic, for everyone who subscribes to it."},
		Params:  []*Param{m.typed(bus.Event, bus.Error).client("an error is an event that says what failed")},
	}, &m, place(&m.Topic, "TOPIC", "topic").bounds(1, 200).client("words with dots between them, such as navigation.complete"), m.accept)
}

func busSend() *Op {
	var m sending
	return sends(Op{
		Name: "bus send", Short: "Send a message to an agent's mailbox", Done: "sent",
		Long: "Send a message to the mailbox of an agent, of controller or system, or of everybody: broadcast.\n" +
			"JSON is an object of at most 1 MiB.\n" +
			"It stays there until it is read or its ttl is over; then it is a dead letter.",
		Example: `bus send grasper '{"object":"cup"}' --priority 1`,
		Tool:    Tool{Name: "send_message", About: "Send a message to the mailbox of an agent, of controller or system, or of everybody: broadcast."},
		Params:  []*Param{m.typed(bus.Types()...)},
	}, &m, place(&m.Recipient, "AGENT", "party").bounds(1, 64).client("an agent's name, controller, system, or broadcast"), m.accept)
}

func busRequest() *Op {
	var m sending
	var limit time.Duration
	return sends(Op{
		Name: "bus request", Short: "Send a request and wait for its response", Done: "answered by",
		Long: "Send a request to an agent, controller or system, and print the response, or the error that answers it.\n" +
			"Exit 1 for an error, exit 4 when no answer came within --timeout (default its ttl).",
		Example: `bus request detector '{"skill":"detect","params":{"area":"kitchen"}}' --timeout 10s`,
		Params: []*Param{
			within(&limit, "timeout", "give up after this `DURATION`, 1ms-1h", time.Millisecond, bus.MaxTTL*time.Second, "1ms-1h"),
		},
		Check: func(c *Call) error { return c.Activate() },
	}, &m, place(&m.Recipient, "AGENT", "party"), func(ctx context.Context, c *Call) (bus.Message, error) {
		answer, err := c.Bus.Request(ctx, c.By, m.Send, limit)
		switch {
		case errors.Is(err, bus.ErrNoReply):
			err = fmt.Errorf("%w: %w", err, ErrTimeout)
		case err == nil && answer.MessageType == bus.Error:
			err = &Failed{}
		}
		return answer, err
	})
}

func busReply() *Op {
	var id string
	var said core.Raw
	var failed bool
	return define(Op{
		Name: "bus reply", Short: "Answer a request in the name of its recipient", Done: "answered with",
		Example: `bus reply 7f3ac… '{"objects":["cup","plate"]}'`,
		Params:  []*Param{place(&id, "ID", "message:unanswered"), payload(&said), flag(&failed, "error", "answer with an error")},
	}, func(ctx context.Context, c *Call) (bus.Message, error) {
		return c.Bus.Reply(ctx, c.By, id, said, failed)
	})
}
