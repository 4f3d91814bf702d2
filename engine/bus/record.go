package bus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Buckets of a tenant. A message's record is written once; what becomes of it
// is written beside it.
const (
	bMessage store.Bucket = "message"        // seq → Message
	bFate    store.Bucket = "message.fate"   // seq, recipient → fate; recipient "" is the conversation's
	bBox     store.Bucket = "message.box"    // recipient, 0, priority, seq → due; the unread ones
	bBoxes   store.Bucket = "message.boxes"  // recipient → how many it has unread; none is no entry
	bDue     store.Bucket = "message.due"    // due, seq, consumer → 1; what Run has to look at, and when
	bHeld    store.Bucket = "message.held"   // seq, consumer → 1; expired in the hand of a reader
	bAsk     store.Bucket = "message.ask"    // correlation id → ask; the open requests
	bDead    store.Bucket = "message.dead"   // seq, consumer → DeadLetter
	bGrave   store.Bucket = "message.grave"  // consumer, 0, seq → nothing; the dead letters of each in order
	bTally   store.Bucket = "message.tally"  // consumer → tally
	bTopic   store.Bucket = "message.topic"  // topic → Topic
	bSub     store.Bucket = "message.sub"    // name → subscription
	bCursor  store.Bucket = "message.cursor" // name → seq up to which it is done
)

// Counters of a tenant.
const (
	countMessages = "message"       // the newest seq
	countFloor    = "message.floor" // messages up to here were cut off
	countOpen     = "message.open"  // unread, in all mailboxes
	countAsks     = "message.asks"  // open requests
	countDead     = "message.dead"  // dead letters that were not sent again
	countLetters  = "message.letters"
	countTopics   = "message.topics"
	countSubs     = "message.subs"
)

// consumer says who a message is for, in the keys of bDue and bDead: one of
// these letters, then the name.
const (
	toMailbox      = 'm' // a recipient's mailbox
	toSubscription = 's' // a durable subscription; in bDue without a name: all of them
	toEvents       = 'e' // a durable subscription to the engine's events; seq is one of the audit log
	toAnswer       = 'q' // the sender of a request, who waits for an answer
)

func key(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

func keyWith(seq uint64, kind byte, name string) []byte {
	return append(append(binary.BigEndian.AppendUint64(make([]byte, 0, 9+len(name)), seq), kind), name...)
}

func fateKey(seq uint64, recipient string) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(recipient)), seq), recipient...)
}

func boxPrefix(recipient string) []byte { return append([]byte(recipient), 0) }

func boxKey(recipient string, priority int, seq uint64) []byte {
	k := append(make([]byte, 0, len(recipient)+10), recipient...)
	return binary.BigEndian.AppendUint64(append(k, 0, byte(priority)), seq)
}

func dueKey(due time.Time, seq uint64, kind byte, name string) []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 17+len(name)), uint64(due.UnixMicro()))
	return append(append(binary.BigEndian.AppendUint64(k, seq), kind), name...)
}

func readDue(k []byte) (due time.Time, seq uint64, kind byte, name string) {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(k))).UTC(), binary.BigEndian.Uint64(k[8:]), k[16], string(k[17:])
}

// fate is what became of a message in one mailbox, or of a conversation.
type fate struct {
	Status   Status    `json:"status,omitempty"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason,omitempty"`
	Response string    `json:"response_id,omitempty"` // the conversation's
}

// ask is an open request.
type ask struct {
	Seq       uint64 `json:"seq"`
	Sender    string `json:"sender_id"`
	Recipient string `json:"recipient_id"`
}

// encode writes a message's record. The payload goes in last and unread: it
// is compact already, and this runs on the store's writer.
func encode(m *Message) ([]byte, error) {
	head := *m
	head.Payload, head.Status, head.Unanswered, head.ResponseID, head.Deliveries = nil, "", false, "", nil
	data, err := core.Encode(&head)
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", m.MessageID, err)
	}
	out := make([]byte, 0, len(data)+len(m.Payload)+12)
	out = append(append(out, data[:len(data)-1]...), `,"payload":`...)
	return append(append(out, m.Payload...), '}'), nil
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

// get reads a message's record; nil when there is none.
func get(tx store.Tx, seq uint64) (*Message, error) {
	data, err := tx.Get(bMessage, key(seq))
	if err != nil {
		return nil, fmt.Errorf("read message %d: %w", seq, err)
	}
	if data == nil {
		return nil, nil
	}
	return decode(data)
}

// getHead is get without the payload, which may be large: for what runs on the
// store's writer, or over many messages.
func getHead(tx store.Tx, seq uint64) (*Message, error) {
	data, err := tx.Get(bMessage, key(seq))
	if err != nil {
		return nil, fmt.Errorf("read message %d: %w", seq, err)
	}
	if data == nil {
		return nil, nil
	}
	return decodeHead(data)
}

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

// put stores v under a key.
func put(tx store.Tx, b store.Bucket, k []byte, v any) error {
	data, err := core.Encode(v)
	if err != nil {
		return fmt.Errorf("encode for %s: %w", b, err)
	}
	return tx.Put(b, k, data)
}

// fetch reads what put stored; false when there is nothing.
func fetch(tx store.Tx, b store.Bucket, k []byte, v any) (bool, error) {
	data, err := tx.Get(b, k)
	if err != nil || data == nil {
		if err != nil {
			err = fmt.Errorf("read %s: %w", b, err)
		}
		return false, err
	}
	if err := core.DecodeStored(data, v); err != nil {
		return false, fmt.Errorf("decode %s: %w", b, err)
	}
	return true, nil
}

// after is the first key behind all those that start with prefix.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// scan calls fn, which may fail, for the keys that start with prefix.
func scan(tx store.Tx, b store.Bucket, prefix []byte, fn func(k, v []byte) (more bool, err error)) error {
	var bad error
	err := tx.Scan(b, prefix, after(prefix), false, func(k, v []byte) bool {
		var more bool
		more, bad = fn(k, v)
		return more && bad == nil
	})
	return errors.Join(err, bad)
}

// decorate fills in what became of a message. Deliveries are for Get alone.
func decorate(tx store.Tx, m *Message) error {
	if m.Topic != "" {
		m.Status = Published
		return nil
	}
	if m.MessageType == Request && m.CorrelationID != "" {
		var a ask
		open, err := fetch(tx, bAsk, []byte(m.CorrelationID), &a)
		if err != nil {
			return err
		}
		m.Unanswered = open && a.Seq == m.Seq
	}
	known := map[string]fate{}
	err := scan(tx, bFate, key(m.Seq), func(k, v []byte) (bool, error) {
		var f fate
		err := core.DecodeStored(v, &f)
		if name := string(k[8:]); name == "" {
			m.ResponseID = f.Response
		} else {
			known[name] = f
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read what became of message %s: %w", m.MessageID, err)
	}
	to := m.Recipients
	if m.RecipientID != Broadcast {
		to = []string{m.RecipientID}
	}
	m.Status = Published // a broadcast that found nobody
	for _, name := range to {
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
	for i, other := range []Status{Published, Expired, Refused, Taken, Open} {
		if s == other {
			return i
		}
	}
	return -1
}
