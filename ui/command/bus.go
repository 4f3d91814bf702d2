package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

func (t *tree) bus() *cobra.Command {
	return t.group("bus", "Messages between agents",
		t.busPublish(),
		t.busSend(),
		t.busRequest(),
		t.busReply(),
		t.busRead(),
		t.busConsume(),
		t.busTail(),
		t.busList(),
		t.command(spec{
			use: "show ID", short: "Show a message with what became of it", effect: Reads, args: []string{"message"},
			run: shows(func(c *call, id string) (bus.Message, error) { return c.eng.Bus.Get(c.ctx, c.by.Tenant, id) }),
		}),
		lists(t, spec{use: "topics", short: "List the topics, those with the newest messages first", effect: Reads}, nil, topicColumns,
			func(c *call, f core.Filter) (core.Page[bus.Topic], error) {
				return c.eng.Bus.Topics(c.ctx, c.by.Tenant, f)
			}),
		lists(t, spec{use: "dead", short: "List the messages that did not get where they should, and why", effect: Reads}, bus.DeadReasons(), deadColumns,
			func(c *call, f core.Filter) (core.Page[bus.DeadLetter], error) {
				return c.eng.Bus.Dead(c.ctx, c.by.Tenant, f)
			}),
		t.command(spec{
			use: "resend ID", short: "Accept a message again, as a new one", effect: Writes, args: []string{"message:dead"},
			long: "Accept a message again, as a new one of the same content: for all the subscribers of its topic, or for its\n" +
				"recipient. A request begins a new conversation. Its dead letters say that it was sent again.",
			run: changes(messageColumns, func(c *call, id string) (bus.Message, error) { return c.eng.Bus.Resend(c.ctx, c.by, id) }),
		}),
		t.busReact(),
		t.busReactions(),
		t.busUnreact(),
		lists(t, spec{use: "subscriptions", short: "List who reads what and how far behind", effect: Reads}, []string{"open", "closed"}, subscriptionColumns,
			func(c *call, f core.Filter) (core.Page[bus.SubscriptionInfo], error) {
				all, err := c.eng.Bus.Subscriptions(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, subscriptionTraits)
			}),
		t.command(spec{
			use: "unsubscribe NAME", short: "Remove a durable subscription and what waits for it", effect: Destroys, confirm: ConfirmAsk, args: []string{"subscription"},
			run: func(c *call, args []string) error {
				if err := c.eng.Bus.Unsubscribe(c.ctx, c.by, args[0]); err != nil {
					return err
				}
				return c.say(map[string]string{"name": args[0], "status": "removed"}, "subscription %s removed", args[0])
			},
		}),
	)
}

func (t *tree) busList() *cobra.Command {
	var q bus.Query
	return lists(t, spec{
		use: "list", short: "List the messages, newest first", effect: Reads,
		long: "List the messages, newest first. --status unanswered are the requests that wait for their answer;\n" +
			"--agent is a sender or recipient, --kind a type. With --correlation: one conversation.",
		example: "bus list --status open --agent grasper\nbus list --topic 'navigation.>' --since 1h",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&q.Topic, "topic", "", "only of topics that this `PATTERN` selects")
			f.StringVar(&q.Correlation, "correlation", "", "only of this conversation `ID`")
			source(f, "topic", "topic")
			source(f, "kind", "enum:"+strings.Join(core.Strings(bus.Types()...), ","))
		},
	}, bus.Statuses(), messageColumns,
		func(c *call, f core.Filter) (core.Page[bus.Message], error) {
			q.Filter = f
			return c.eng.Bus.List(c.ctx, c.by.Tenant, q)
		})
}

// subscriptionTraits are what the list's flags look at.
func subscriptionTraits(s bus.SubscriptionInfo) core.Traits {
	status := "closed"
	if s.Open {
		status = "open"
	}
	return core.Traits{Status: status, Agent: s.RecipientID, Kind: string(s.MessageType), At: s.CreatedAt, Text: s.Name + " " + s.Pattern + " " + s.RecipientID + " " + s.By}
}

// address is where a message goes: its topic, or its recipient.
func address(topic, recipient string) string {
	if topic != "" {
		return topic
	}
	return "@" + recipient
}

func messageColumns(c *call) []column[bus.Message] {
	type M = bus.Message
	return []column[M]{
		{title: "MESSAGE", text: func(m M) string { return m.MessageID }},
		{title: "TO", most: 28, text: func(m M) string { return address(m.Topic, m.RecipientID) }},
		{title: "FROM", most: 20, text: func(m M) string { return m.SenderID }},
		{title: "TYPE", text: func(m M) string { return string(m.MessageType) }},
		{title: "STATUS", text: func(m M) string {
			if m.Unanswered {
				return unansweredFor(c, m)
			}
			return string(m.Status)
		}},
		{title: "AGE", right: true, text: func(m M) string { return c.age(m.Timestamp) }},
		{title: "PRI", wide: true, right: true, text: func(m M) string { return strconv.Itoa(m.Priority) }},
		{title: "TTL", wide: true, right: true, text: func(m M) string { return short(time.Duration(m.TTL) * time.Second) }},
		{title: "SEQ", wide: true, right: true, text: func(m M) string { return strconv.FormatUint(m.Seq, 10) }},
		{title: "CORRELATION", wide: true, text: func(m M) string { return m.CorrelationID }},
		{title: "RESPONSE", wide: true, text: func(m M) string { return m.ResponseID }},
		{title: "TASK", wide: true, text: func(m M) string { return m.TaskID }},
		{title: "TRACE", wide: true, text: func(m M) string { return m.TraceID }},
		{title: "SENT", wide: true, text: func(m M) string { return stamp(m.Timestamp) }},
		{title: "PAYLOAD", most: 40, text: func(m M) string { return string(m.Payload) }},
	}
}

// unansweredFor flags a request that waits for its answer, with its age.
func unansweredFor(c *call, m bus.Message) string {
	return fmt.Sprintf("%s, no answer for %s", m.Status, c.age(m.Timestamp))
}

func topicColumns(c *call) []column[bus.Topic] {
	type T = bus.Topic
	return []column[T]{
		{title: "TOPIC", text: func(t T) string { return t.Topic }},
		{title: "MESSAGES", right: true, text: func(t T) string { return strconv.FormatInt(t.Messages, 10) }},
		{title: "LAST", right: true, text: func(t T) string { return c.age(t.LastAt) }},
		{title: "READERS", right: true, text: func(t T) string { return strconv.Itoa(t.Subscribers) }},
		{title: "LAG", right: true, text: func(t T) string { return strconv.Itoa(t.Lag) }},
		{title: "AT", wide: true, text: func(t T) string { return stamp(t.LastAt) }},
	}
}

func deadColumns(c *call) []column[bus.DeadLetter] {
	type D = bus.DeadLetter
	return []column[D]{
		{title: "MESSAGE", text: func(d D) string { return d.MessageID }},
		{title: "TO", most: 28, text: func(d D) string { return address(d.Topic, d.RecipientID) }},
		{title: "FROM", most: 20, text: func(d D) string { return d.SenderID }},
		{title: "REASON", text: func(d D) string { return d.Reason }},
		{title: "AGE", right: true, text: func(d D) string { return c.age(d.At) }},
		{title: "SUBSCRIPTION", text: func(d D) string { return d.Subscription }},
		{title: "TYPE", wide: true, text: func(d D) string { return string(d.MessageType) }},
		{title: "SENT", wide: true, text: func(d D) string { return stamp(d.Timestamp) }},
		{title: "DIED", wide: true, text: func(d D) string { return stamp(d.At) }},
		{title: "TASK", wide: true, text: func(d D) string { return d.TaskID }},
		{title: "TRACE", wide: true, text: func(d D) string { return d.TraceID }},
		{title: "RESENT AS", wide: true, text: func(d D) string { return d.ResentAs }},
		{title: "DETAIL", most: 40, text: func(d D) string { return d.Detail }},
	}
}

func subscriptionColumns(c *call) []column[bus.SubscriptionInfo] {
	type S = bus.SubscriptionInfo
	return []column[S]{
		{title: "NAME", text: func(s S) string { return s.Name }},
		{title: "READS", most: 32, text: func(s S) string { return address(s.Pattern, s.RecipientID) }},
		{title: "BY", most: 20, text: func(s S) string { return s.By }},
		{title: "READER", text: func(s S) string { return subscriptionTraits(s).Status }},
		{title: "LAG", right: true, text: func(s S) string { return strconv.Itoa(s.Lag) }},
		{title: "IN HAND", right: true, text: func(s S) string { return count(int64(s.Unacked)) }},
		{title: "MISSED", right: true, text: func(s S) string { return count(int64(s.Missed)) }},
		{title: "DEAD", wide: true, right: true, text: func(s S) string { return count(int64(s.Dead)) }},
		{title: "DROPPED", wide: true, right: true, text: func(s S) string { return count(s.Dropped) }},
		{title: "CURSOR", wide: true, right: true, text: func(s S) string { return strconv.FormatUint(s.Cursor, 10) }},
		{title: "TYPE", wide: true, text: func(s S) string { return string(s.MessageType) }},
		{title: "AGE", wide: true, right: true, text: func(s S) string { return c.age(s.CreatedAt) }},
	}
}
