package op

import (
	"cmp"
	"context"
	"fmt"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

func messages() []*Op {
	type M = bus.Message
	return []*Op{
		busPublish(),
		busSend(),
		busRequest(),
		busReply(),
		busRead(),
		busConsume(),
		busTail(),
		busList(),
		show(Op{Name: "bus show", Short: "Show a message with what became of it"}, arg("ID", "message"),
			func(ctx context.Context, c *Call, id string) (M, error) { return c.Bus.Get(ctx, c.By.Tenant, id) }),
		list(Op{Name: "bus topics", Short: "List the topics, those with the newest messages first"},
			byTenant(func(c *Call) tenantRead[core.Filter, core.Page[bus.Topic]] { return c.Bus.Topics })),
		change(Op{
			Name: "bus resend", Short: "Accept a message again, as a new one", Done: "sent again as",
			Long: "Accept a message again, as a new one of the same content: for all the subscribers of its topic, or for its\n" +
				"recipient. A request begins a new conversation. The old one says so, and is no dead letter any more.",
		}, arg("ID", "message:dead"), func(ctx context.Context, c *Call, id string) (M, error) { return c.Bus.Resend(ctx, c.By, id) }),
		picked(Op{Name: "bus subscriptions", Short: "List who reads what and how far behind", Statuses: []string{"open", "closed"}},
			func(c *Call) tenantList[bus.SubscriptionInfo] { return c.Bus.Subscriptions }, func(_ *Call, s bus.SubscriptionInfo) core.Traits {
				return core.Traits{
					Status: reader(s), Agent: s.RecipientID, Kind: string(s.MessageType), At: s.CreatedAt,
					Text: s.Name + " " + s.Pattern + " " + s.RecipientID + " " + s.By,
				}
			}),
		change(Op{
			Name: "bus unsubscribe", Short: "Remove a durable subscription and what waits for it",
			Effect: Destroys, Confirm: ConfirmAsk, Done: "removed",
		}, arg("NAME", "subscription"), func(ctx context.Context, c *Call, name string) (Unsubscribed, error) {
			return Unsubscribed{name, "removed"}, c.Bus.Unsubscribe(ctx, c.By, name)
		}),
	}
}

// reader says whether somebody reads by a subscription now: open, or closed.
func reader(s bus.SubscriptionInfo) string {
	if s.Open {
		return "open"
	}
	return "closed"
}

// Unsubscribed is a subscription that is no more.
type Unsubscribed struct {
	Name   string `json:"name"`
	Status string `json:"status"` // removed
}

// Tell says it.
func (u Unsubscribed) String() string { return "subscription " + u.Name + " removed" }

func busList() *Op {
	var q bus.Query
	return list(Op{
		Name: "bus list", Short: "List the messages, newest first",
		Long: "List the messages, newest first. --status unanswered are the requests that wait for their answer, and dead\n" +
			"those that expired, were refused or not answered, and were not sent again. --agent is a sender or recipient, --kind a type. With --correlation: one conversation.",
		Example:  "bus list --status open --agent grasper\nbus list --topic 'navigation.>' --since 1h",
		Statuses: bus.Statuses(), Kinds: "enum:" + words(",", bus.Types()...),
		Params: []*Param{
			flag(&q.Topic, "topic", "only of topics that this `PATTERN` selects").from("topic"),
			flag(&q.Correlation, "correlation", "only of this conversation `ID`"),
		},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[bus.Message], error) {
		q.Filter = f
		return c.Bus.List(ctx, c.By.Tenant, q)
	})
}

// counted is how many messages are read.
func counted(n *int, most int, about string) *Param {
	allowed := fmt.Sprintf("1-%d", most)
	return within(n, "count", about+" `N`, "+allowed, 1, most, allowed)
}

func busRead() *Op {
	var who string
	var peek bool
	n := core.DefaultPageSize
	return define(Op{
		Name: "bus read", Short: "Take messages out of a mailbox", Done: "read",
		Long: "Take messages out of the mailbox of an agent, controller or system, system unless named: the highest priority\n" +
			"first, then the oldest. They are acknowledged and won't come again. With --peek they stay.",
		Example: "bus read grasper --count 5\nbus read grasper --peek",
		Tool: Tool{
			Name: "read_messages", Names: map[string]string{"agent": "recipient_id", "count": "limit"},
			About: "Take messages out of a mailbox, the highest priority first. They don't come again unless peek is true.",
		},
		Params: []*Param{
			maybe(&who, "AGENT", "mailbox").bounds(1, 64).client("whose mailbox: an agent reads its own; an operator that of system unless said"),
			flag(&peek, "peek", "only look"), counted(&n, core.MaxPageSize, "at most").client("how many at most"),
		},
	}, func(ctx context.Context, c *Call) ([]bus.Message, error) {
		whose := bus.System
		if c.By.Kind == core.Agent {
			whose = c.By.Name
		}
		who = cmp.Or(who, whose)
		if peek {
			return c.Bus.Peek(ctx, c.By, who, n)
		}
		return c.Bus.Read(ctx, c.By, who, n)
	})
}

func busTail() *Op {
	var pattern string
	var follow bool
	n := core.DefaultPageSize
	topics := maybe(&pattern, "PATTERN", "topic")
	topics.Valid = func() error {
		_, err := bus.ParsePattern(pattern)
		return err
	}
	return stream(Op{
		Name: "bus tail", Short: "Print the newest messages, oldest first",
		Long: "Print the newest messages, oldest first; with a pattern, those of the topics that it selects: * stands for\n" +
			"one word, > at the end for one or more. Without one also the direct messages. What the engine does is under\n" +
			"sys.>, for example sys.task.succeeded. It reads along and takes nothing: see consume and read for that.",
		Example: "bus tail 'navigation.>' --follow\nbus tail 'sys.task.*'",
		Params:  []*Param{topics, following(&follow), counted(&n, 1000, "begin with the newest")},
		Check:   activeIf(&follow),
	}, func(ctx context.Context, c *Call, emit func(...bus.Message) error) error {
		var seq uint64
		first := true
		return c.follow(ctx, func() (over bool, err error) {
			var found []bus.Message
			if first {
				first = false
				if found, seq, err = c.Bus.Recent(ctx, c.By.Tenant, pattern, n); err == nil {
					err = emit(found...)
				}
			}
			for from := seq - 1; follow && err == nil && seq != from; { // a busy log is read in pieces
				from = seq
				if found, seq, err = c.Bus.Since(ctx, c.By.Tenant, pattern, from, 500); err == nil {
					err = emit(found...)
				}
			}
			return !follow, err
		})
	})
}

func busConsume() *Op {
	var opt bus.SubscribeOptions
	var follow bool
	n := core.MaxPageSize
	types := core.Strings(bus.Types()...)
	return stream(Op{
		Name: "bus consume", Short: "Read topics as a durable subscription", Effect: Writes,
		Long: "Read the topics that a pattern selects as a durable subscription: each time it goes on where it was. What\n" +
			"is printed is acknowledged; what expires before it comes to it is a dead letter. A new NAME needs its PATTERN\n" +
			"and begins with what is accepted from now on, or at --start.",
		Example: "bus consume indexer 'navigation.>' --follow",
		Params: []*Param{
			place(&opt.Name, "NAME", "subscription"), maybe(&opt.Pattern, "PATTERN", "topic"),
			following(&follow),
			flag(&opt.From, "start", "a new one begins at this `SEQ`"),
			flag((*string)(&opt.Type), "type", "a new one reads only this `TYPE`: "+words("|", bus.Types()...)).enum(types...),
			counted(&n, 100_000, "at most"),
		},
		Check: activeIf(&follow),
	}, func(ctx context.Context, c *Call, emit func(...bus.Message) error) error {
		opt.By = c.By.Name
		if err := c.known(ctx, &opt); err != nil {
			return err
		}
		s, err := c.Bus.Subscribe(ctx, c.By.Tenant, opt)
		if err != nil {
			return err
		}
		defer s.Close()
		for range n {
			d, ok, err := s.Poll(ctx)
			if err == nil && !ok && follow {
				d, err = s.Next(ctx)
				ok = true
			}
			if err != nil || !ok {
				return err
			}
			if err := emit(d.Message); err != nil {
				return err
			}
			d.Ack()
		}
		return s.Close()
	})
}

// known fills in what a durable subscription that exists was made with.
func (c *Call) known(ctx context.Context, opt *bus.SubscribeOptions) error {
	if opt.Pattern != "" && opt.Type != "" {
		return nil
	}
	all, err := c.Bus.Subscriptions(ctx, c.By.Tenant)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name == opt.Name {
			opt.Pattern, opt.Type = cmp.Or(opt.Pattern, s.Pattern), cmp.Or(opt.Type, s.MessageType)
		}
	}
	if opt.Pattern == "" {
		return usage("pattern", "bus consume: there is no subscription %q yet; a new one needs a PATTERN", core.Clip(opt.Name))
	}
	return nil
}
