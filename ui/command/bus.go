package command

import (
	"fmt"
	"strconv"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/op"
)

// messageText is a message as it is followed.
func messageText(m bus.Message, wide bool) string {
	when := m.Timestamp.UTC().Format("15:04:05")
	if wide {
		when = stamp(m.Timestamp) + " " + m.MessageID
	}
	return fmt.Sprintf("%s %s %s %s: %s", when, address(m.Topic, m.RecipientID), m.MessageType, m.SenderID, m.Payload)
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
		{title: "READER", text: func(s S) string { return op.Reader(s) }},
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
