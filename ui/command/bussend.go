package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// sending are the flags of the commands that send a message.
type sending struct {
	s        bus.Send
	typ      string
	ttl      int
	priority int
}

func (m *sending) bind(f *pflag.FlagSet) {
	f.StringVar(&m.s.Sender, "from", "", "send as this agent `NAME` (default system)")
	f.Var((*wholeSeconds)(&m.ttl), "ttl", "keep it for delivery so long: `SECONDS` or a duration, 1s-1h (default 60)")
	f.IntVar(&m.priority, "priority", bus.DefaultPriority, "`N` from 1, read first, to 10")
	f.StringVar(&m.s.CorrelationID, "correlation", "", "conversation `ID`, a version 4 UUID")
	f.StringVar(&m.s.Trace, "trace", "", "trace `ID`, 32 hex digits (default a new one)")
	f.StringVar(&m.s.Task, "task", "", "task `ID` that it belongs to")
	source(f, "from", "agent")
	source(f, "task", "task")
}

// check reads the payload and the flags; the bus checks the rest.
func (m *sending) check(c *call, payload string) (err error) {
	if m.s.Payload, err = c.document("payload", payload); err != nil {
		return err
	}
	if c.flags.Changed("ttl") && (m.ttl < 1 || m.ttl > bus.MaxTTL) {
		return usage("ttl", "--ttl: %d is not allowed; allowed: 1-%d seconds", m.ttl, bus.MaxTTL)
	}
	if m.priority < 1 || m.priority > bus.LowestPriority {
		return usage("priority", "--priority: %d is not allowed; allowed: 1-%d", m.priority, bus.LowestPriority)
	}
	m.s.TTL, m.s.Priority, m.s.Type = m.ttl, m.priority, bus.Type(m.typ)
	return nil
}

// wholeSeconds is a whole number of seconds, also written as a duration.
type wholeSeconds int

func (s *wholeSeconds) Type() string { return "SECONDS" }
func (s *wholeSeconds) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.Itoa(int(*s))
}

func (s *wholeSeconds) Set(text string) error {
	if n, err := strconv.Atoi(text); err == nil {
		*s = wholeSeconds(n)
		return nil
	}
	d, err := core.ParseSpan(text)
	if err != nil || d.Seconds() > math.MaxInt32 || d%time.Second != 0 {
		return errors.New("allowed: whole seconds like 60, or a duration like 2m")
	}
	*s = wholeSeconds(d / time.Second)
	return nil
}

func (t *tree) busPublish() *cobra.Command {
	var m sending
	return t.command(spec{
		use: "publish TOPIC JSON", short: "Publish a message under a topic", effect: Writes, args: []string{"topic", "json"},
		long: "Publish a message under a topic, for everyone who subscribes to it. JSON is an object, @file, or - for stdin.\n" +
			"It is on disk when this returns. Topics are words with dots between them; those under sys. are the engine's.",
		example: `bus publish navigation.complete '{"location":"kitchen"}' --from navigator`,
		flags: func(f *pflag.FlagSet) {
			m.bind(f)
			enumVar(f, &m.typ, "type", "", "event", "`TYPE`: event|error", "event", "error")
		},
		check: func(c *call, args []string) error {
			m.s.Topic = args[0]
			return m.check(c, args[1])
		},
		run: m.send,
	})
}

func (t *tree) busSend() *cobra.Command {
	var m sending
	return t.command(spec{
		use: "send AGENT JSON", short: "Send a message to an agent's mailbox", effect: Writes, args: []string{"party", "json"},
		long: "Send a message to the mailbox of an agent, of controller or system, or of everybody: broadcast.\n" +
			"It stays there until it is read or its ttl is over; then it is a dead letter.",
		example: `bus send grasper '{"object":"cup"}' --priority 1`,
		flags: func(f *pflag.FlagSet) {
			m.bind(f)
			kinds := core.Strings(bus.Types()...)
			enumVar(f, &m.typ, "type", "", "event", "`TYPE`"+allowedList(kinds), kinds...)
		},
		check: func(c *call, args []string) error {
			m.s.Recipient = args[0]
			return m.check(c, args[1])
		},
		run: m.send,
	})
}

// send is the run of a command that sends its message.
func (m *sending) send(c *call, _ []string) error {
	sent, err := c.eng.Bus.Accept(c.ctx, c.by, m.s)
	if err != nil {
		return err
	}
	return record(c, sent, messageColumns(c))
}

func (t *tree) busRequest() *cobra.Command {
	var m sending
	var limit time.Duration
	return t.command(spec{
		use: "request AGENT JSON", short: "Send a request and wait for its response", effect: Writes, args: []string{"party", "json"},
		long: "Send a request to an agent, controller or system, and print the response, or the error that answers it.\n" +
			"Exit 1 for an error, exit 4 when no answer came within --timeout (default its ttl).",
		example: `bus request detector '{"skill":"detect","params":{"area":"kitchen"}}' --timeout 10s`,
		flags: func(f *pflag.FlagSet) {
			m.bind(f)
			spanVar(f, &limit, "timeout", "give up after this `DURATION`, 1ms-1h")
		},
		check: func(c *call, args []string) error {
			m.s.Recipient = args[0]
			if c.flags.Changed("timeout") && (limit < time.Millisecond || limit > bus.MaxTTL*time.Second) {
				return usage("timeout", "--timeout: %v is not allowed; allowed: 1ms-1h", limit)
			}
			if err := m.check(c, args[1]); err != nil {
				return err
			}
			return c.activate()
		},
		run: func(c *call, _ []string) error {
			answer, err := c.eng.Bus.Request(c.ctx, c.by, m.s, limit)
			if errors.Is(err, bus.ErrNoReply) {
				return fmt.Errorf("%w: %w", err, op.ErrTimeout)
			}
			if err != nil {
				return err
			}
			if err := record(c, answer, messageColumns(c)); err != nil || answer.MessageType != bus.Error {
				return err
			}
			return &ExitError{Code: ExitFailed}
		},
	})
}

func (t *tree) busReply() *cobra.Command {
	var payload bus.Send
	var isError bool
	return t.command(spec{
		use: "reply ID JSON", short: "Answer a request in the name of its recipient", effect: Writes, args: []string{"message:unanswered", "json"},
		example: `bus reply 7f3ac… '{"objects":["cup","plate"]}'`,
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&isError, "error", false, "answer with an error")
		},
		check: func(c *call, args []string) (err error) {
			payload.Payload, err = c.document("payload", args[1])
			return err
		},
		run: func(c *call, args []string) error {
			sent, err := c.eng.Bus.Reply(c.ctx, c.by, args[0], payload.Payload, isError)
			if err != nil {
				return err
			}
			return record(c, sent, messageColumns(c))
		},
	})
}
