package face

import (
	"cmp"
	"fmt"

	"swarmdeck/engine/bus"
)

func messages() []*Face {
	return []*Face{
		Of[bus.Message]{
			Noun: "message", ID: "message_id",
			Columns: "MESSAGE:message_id TO,28 FROM:sender_id,20 TYPE:message_type STATUS AGE:timestamp,age PAYLOAD:payload,40",
			Wide:    "PRI:priority TTL:ttl,s SEQ:seq CORRELATION:correlation_id RESPONSE:response_id TASK:task_id TRACE:trace_id SENT:timestamp",
			Cells: Cells[bus.Message]{
				"TO": func(m *bus.Message, _ At) string { return Address(m.Topic, m.RecipientID) },
				"STATUS": func(m *bus.Message, at At) string {
					if m.Unanswered {
						return fmt.Sprintf("%s, no answer for %s", m.Status, at.Age(m.Timestamp))
					}
					return string(m.Status)
				},
			},
		}.Face(),
		Of[bus.Topic]{
			Noun: "topic", ID: "topic",
			Columns: "TOPIC:topic MESSAGES:messages LAST:last_at,age READERS:subscribers LAG:lag",
			Wide:    "AT:last_at",
		}.Face(),
		Of[bus.DeadLetter]{
			Noun: "dead letter", ID: "message_id",
			List:    "REASON:13 TO:16*2k FROM:10*1/3m TYPE:8/5 SUBSCRIPTION:12*1/4 AGE:4/2 DETAIL:14*3/1 -MESSAGE",
			Columns: "MESSAGE:message_id TO,28 FROM:sender_id,20 REASON:reason AGE:at,age SUBSCRIPTION:subscription DETAIL:detail,40",
			Wide:    "TYPE:message_type SENT:timestamp DIED:at TASK:task_id TRACE:trace_id RESENT_AS:resent_as",
			Cells: Cells[bus.DeadLetter]{
				"TO": func(d *bus.DeadLetter, _ At) string { return Address(d.Topic, d.RecipientID) },
			},
		}.Face(),
		Of[bus.SubscriptionInfo]{
			Noun: "subscription", ID: "name",
			Columns: "NAME:name READS,32 BY:by,20 READER LAG:lag IN_HAND:unacked MISSED:missed",
			Wide:    "DEAD:dead DROPPED:dropped CURSOR:cursor TYPE:message_type AGE:created_at,age",
			Cells: Cells[bus.SubscriptionInfo]{
				"READS": func(s *bus.SubscriptionInfo, _ At) string { return Address(s.Pattern, s.RecipientID) },
				"READER": func(s *bus.SubscriptionInfo, _ At) string {
					if s.Open {
						return "open"
					}
					return "closed"
				},
			},
		}.Face(),
	}
}

// Address is where a message goes: its topic, or its recipient.
func Address(topic, recipient string) string {
	return cmp.Or(topic, "@"+recipient)
}
