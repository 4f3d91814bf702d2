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
			Wide:    "PRI:priority TTL:ttl,s SEQ:seq CORRELATION:correlation_id RESPONSE:response_id RESENT_AS:resent_as TASK:task_id TRACE:trace_id SENT:timestamp",
			Cells: Cells[bus.Message]{
				"TO": func(m *bus.Message, _ At) string { return Address(m.Topic, m.RecipientID) },
				"STATUS": func(m *bus.Message, at At) string {
					switch {
					case m.Unanswered:
						return fmt.Sprintf("%s, no answer for %s", m.Status, at.Age(m.Timestamp))
					case m.Dead != "" && m.Dead != string(m.Status):
						return fmt.Sprintf("%s, %s", m.Status, m.Dead)
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
		Of[bus.SubscriptionInfo]{
			Noun: "subscription", ID: "name",
			List:    "READS:18*2k NAME:12*1/2 BY:10*1/3m READER:10 LAG:6 IN_HAND:7/4 MISSED:6/1 AGE:6/5 -CURSOR -TYPE",
			Columns: "NAME:name READS,32 BY:by,20 READER LAG:lag IN_HAND:unacked MISSED:missed",
			Wide:    "CURSOR:cursor TYPE:message_type AGE:created_at,age",
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
