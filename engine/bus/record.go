package bus

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// What a tenant has beside its messages, topics and durable subscriptions. A
// message's record is written once; what becomes of it is written beside it.
const (
	fates    record.Rows[fate]     = "message.fate"   // seq, consumer
	deads    record.Rows[struct{}] = "message.dead"   // seq; the dead letters that were not sent again
	boxes    record.Rows[struct{}] = "message.box"    // recipient, priority, seq; the unread ones
	boxSizes record.Rows[uint64]   = "message.boxes"  // recipient → how many it has unread; none is no entry
	dues     record.Rows[struct{}] = "message.due"    // due, seq, consumer; what Run has to look at, and when
	inHands  record.Rows[uint64]   = "message.held"   // seq, consumer → due; expired in the hand of a reader
	asks     record.Rows[ask]      = "message.ask"    // correlation id; the open requests
	cursors  record.Rows[uint64]   = "message.cursor" // name of a subscription → seq up to which it is done
)

// Counters of a tenant.
const (
	countOpen = "message.open"   // unread, in all mailboxes
	countAsks = "message.asks"   // open requests
	countDead = "message.unsent" // dead letters
)

// consumer says who a message is for, in keys: one of these letters, then the
// name.
const (
	toMailbox      = 'm' // a recipient's mailbox
	toSubscription = 's' // a durable subscription; among dues without a name: all of them
	toAnswer       = 'q' // the sender of a request, who waits for an answer
	toRepeat       = 'r' // whoever gets it when it is sent again
)

func ofConsumer(seq uint64, kind byte, name string) record.Key {
	return record.Seq(seq).Byte(kind).Last(name)
}

func inBox(recipient string, priority int, seq uint64) record.Key {
	return record.Text(recipient).Byte(byte(priority)).Seq(seq)
}

func dueKey(due time.Time, seq uint64, kind byte, name string) record.Key {
	return record.Key(nil).Time(due).Seq(seq).Byte(kind).Last(name)
}

func readDue(k record.Parts) (due time.Time, seq uint64, kind byte, name string) {
	return k.Time(), k.Seq(), k.Byte(), string(k)
}

const messages store.Bucket = "message"

func (b *Bus) messageKind() record.Table[Message] {
	return &record.Kind[*Message]{
		Noun: "message", Bucket: messages, Ledger: b.ledger, Follow: b.accepted,
		ID: func(m *Message) string { return m.MessageID }, Number: record.UUIDs("message_id"),
		Head:   func(m *Message) record.Head { return record.Head{Tenant: &m.TenantID, Created: &m.Timestamp} },
		Encode: encode, Decode: decode, Brief: decodeHead, Personal: b.eraseMessage, Ended: b.ended, Leaves: b.forget,
		Fits: (*Message).fits,
	}
}

// topicKind keeps the topics with messages.
func (b *Bus) topicKind() record.Table[Topic] {
	return &record.Kind[*Topic]{
		Noun: "topic", Bucket: "message.topic", Quiet: true, Ledger: b.ledger,
		ID: func(t *Topic) string { return t.Topic },
	}
}

// fate is what became of a message for one consumer.
type fate struct {
	Status Status    `json:"status,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	Next   string    `json:"next_id,omitempty"` // the message that answers or repeats it
}

// lost says that it did not get there.
func (f fate) lost() bool { return f.Status == Expired || f.Status == Refused }

// ask is an open request.
type ask struct {
	Seq       uint64 `json:"seq"`
	Sender    string `json:"sender_id"`
	Recipient string `json:"recipient_id"`
}

func askOf(m *Message) ask { return ask{m.Seq, m.SenderID, m.RecipientID} }

// encode writes a message's record. The payload goes in last and unread: it
// is compact already, and this runs on the store's writer.
func encode(b []byte, m *Message) ([]byte, error) {
	head := *m
	head.Payload, head.Fate = nil, Fate{}
	data, err := core.Encode(&head)
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", m.MessageID, err)
	}
	b = slices.Grow(b, len(data)+len(m.Payload)+12)
	b = append(append(b, data[:len(data)-1]...), `,"payload":`...)
	return append(append(b, m.Payload...), '}'), nil
}

// decode reads a message's record; the result keeps no reference to data.
func decode(data []byte) (*Message, error) {
	m := &Message{}
	if err := core.DecodeStored(data, m); err != nil {
		return nil, fmt.Errorf("decode a message: %w", err)
	}
	return m, nil
}

// topicOf is the topic in a message's record, without decoding it: "" for a
// direct message. Neither ids nor topics need escapes in JSON.
func topicOf(data []byte) []byte {
	const before, between = `{"message_id":"`, `","topic":"`
	at := len(before) + 36
	if len(data) < at+len(between) || string(data[at:at+len(between)]) != between {
		return nil
	}
	rest := data[at+len(between):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// decodeHead is decode without the payload, which may be large: for what runs on
// the store's writer, or over many messages.
func decodeHead(data []byte) (*Message, error) {
	if head := headOf(data); len(head) < len(data) {
		data = append(bytes.Clone(head), '}')
	}
	return decode(data)
}

// headOf is a message's record up to its payload. Quotes inside JSON strings
// are escaped and nothing nested comes before the payload, so the first place
// where its name stands is the one.
func headOf(data []byte) []byte {
	if end := bytes.Index(data, []byte(`,"payload":`)); end >= 0 {
		return data[:end]
	}
	return data
}

// decorate fills in what became of a message. Deliveries are for Get alone.
func decorate(tx store.Tx, m *Message) error {
	if m.MessageType == Request && m.CorrelationID != "" {
		a, open, err := asks.Get(tx, record.Key(m.CorrelationID))
		if err != nil {
			return err
		}
		m.Unanswered = open && a.Seq == m.Seq
	}
	known := map[string]fate{}
	err := fates.Each(tx, record.Seq(m.Seq), func(k record.Parts, f fate) (bool, error) {
		if f.lost() {
			m.Dead = cmp.Or(m.Dead, string(f.Status))
		}
		switch kind, name := k.Byte(), string(k); kind {
		case toMailbox:
			known[name] = f
		case toSubscription:
			m.Deliveries = append(m.Deliveries, Delivered{Subscription: name, Status: f.Status, At: f.At, Reason: f.Reason})
		case toAnswer:
			if m.ResponseID = f.Next; f.lost() {
				m.Dead = Unanswered
			}
		case toRepeat:
			m.ResentAs = f.Next
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read what became of message %s: %w", m.MessageID, err)
	}
	m.Status = Published // it has a topic, or is a broadcast that found nobody
	for _, name := range m.to() {
		f, done := known[name]
		if !done {
			f.Status = Open
		}
		m.Deliveries = append(m.Deliveries, Delivered{RecipientID: name, Status: f.Status, At: f.At, Reason: f.Reason})
		if rank(f.Status) > rank(m.Status) {
			m.Status = f.Status
		}
	}
	return nil
}

// rank orders the statuses of a broadcast's deliveries: the highest is shown.
func rank(s Status) int {
	return slices.Index([]Status{Published, Expired, Refused, Taken, Open}, s)
}

// need is a message that something else names, so that it must be there.
func need(m *Message, err error) (*Message, error) {
	if err == nil && m == nil {
		err = core.Errorf(core.Internal, "a message is missing; run audit reconcile")
	}
	return m, err
}

// unsettled is what is unread, unanswered and dead: it follows from the messages and what became of
// them.
type unsettled struct{}

var _ audit.Deriver = unsettled{}

func (unsettled) Subject() string { return "mailbox" }

func (unsettled) States(store.Tx, func(string, any) error) error { return nil }

func (unsettled) Derives() []string {
	return []string{string(boxes), string(boxSizes), string(asks), string(deads), "#" + countOpen, "#" + countAsks, "#" + countDead}
}

func (unsettled) Derive(tx store.Tx, d *audit.Derivation) error {
	sizes := map[string]uint64{}
	unread, asked, dead := int64(0), int64(0), int64(0)
	err := tx.Scan(messages, nil, nil, false, func(_, data []byte) (bool, error) {
		m, err := decodeHead(data)
		if err != nil {
			return true, nil // of one that can't be read the digest differs
		}
		over, lost := map[string]bool{}, false
		err = fates.Each(tx, record.Seq(m.Seq), func(k record.Parts, f fate) (bool, error) {
			over[string(k)], lost = true, lost || f.lost()
			return true, nil
		})
		if err == nil && lost && !over[string(toRepeat)] {
			dead++
			err = deads.Expect(d, record.Seq(m.Seq), struct{}{})
		}
		for _, name := range m.to() {
			if err == nil && !over[string(toMailbox)+name] {
				unread++
				sizes[name]++
				err = boxes.Expect(d, inBox(name, m.Priority, m.Seq), struct{}{})
			}
		}
		if err == nil && m.MessageType == Request && !over[string(toAnswer)] {
			asked++
			err = asks.Expect(d, record.Key(m.CorrelationID), askOf(m))
		}
		return true, err
	})
	for name, n := range sizes {
		if err == nil {
			err = boxSizes.Expect(d, record.Key(name), n)
		}
	}
	d.Count(countOpen, unread)
	d.Count(countAsks, asked)
	d.Count(countDead, dead)
	return err
}
