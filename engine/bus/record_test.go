package bus

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func FuzzMessagesReadAsTheyWereWritten(f *testing.F) {
	f.Add("a.b", "ann", "", `{"x":[1,2,{"y":"\u00e9"}]}`, 60, 5)
	f.Add("", "system", "bob", `{}`, 3600, 1)
	f.Add("", `x","payload":{"`, "bob", `{",\"payload\":":1}`, 5, 5)
	f.Add("", "", "broadcast", `{"topic":"x","message_id":"y"}`, 1, 10)
	f.Fuzz(func(t *testing.T, topic, sender, recipient, payload string, ttl, priority int) {
		d := &draft{Send: Send{Topic: topic, Sender: sender, Recipient: recipient, Payload: core.Raw(payload), TTL: ttl, Priority: priority}}
		if err := d.check(); err != nil {
			expect.Is(t, core.AsError(err).Code, core.InvalidInput, err)
			return
		}
		for _, s := range []string{sender, recipient} { // names are checked against the directory
			if !core.Raw(core.MustEncode(strings.ToValidUTF8(s, ""))).IsValid() || strings.ToValidUTF8(s, "") != s {
				return
			}
		}
		m := &Message{
			MessageID: core.NewUUID("t_acme", 7, nil), Topic: d.Topic, TenantID: "t_acme", Seq: 7, SenderID: d.Sender, RecipientID: d.Recipient,
			MessageType: d.Type, Timestamp: time.Now().UTC().Truncate(time.Microsecond), TTL: d.TTL, Priority: d.Priority, Payload: d.Payload,
		}
		data := expect.Of(encode(nil, m))(t)
		expect.Must(t, core.Raw(data).IsValid(), "no JSON: %s", data)
		got := expect.Of(decode(data))(t)
		a, b := core.MustEncode(got), core.MustEncode(m)
		expect.True(t, bytes.Equal(a, b), "read\n %s\nwritten\n %s", a, b)
		head, err := decodeHead(data)
		m.Payload = nil
		expect.True(t, err == nil && bytes.Equal(core.MustEncode(head), core.MustEncode(m)), "head\n %s\nof\n %s\n%v", core.MustEncode(head), data, err)
		expect.Is(t, string(topicOf(data)), topic, "topic")
	})
}

func FuzzDecodingNeverPanics(f *testing.F) {
	f.Add([]byte(`{"message_id":"a7f3c2e1-8d4b-4a9c-9e2f-1b3c4d5e6f7a","topic":"a.b","ttl":60,"payload":{}}`))
	f.Add([]byte(`{"topic":"a","payload":{"a":1}}`))
	f.Add([]byte(`{"recipient_id":"ann","message_type":"request","correlation_id":"x","payload":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		topicOf(data)
		_, _ = decodeHead(data)
		if m, err := decode(data); err == nil {
			if _, err := encode(nil, m); err != nil {
				t.Logf("%v", err)
			}
		}
	})
}
