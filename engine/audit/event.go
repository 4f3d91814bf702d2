package audit

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// Events is the append-only bucket of the log: big-endian seq → event JSON.
const Events store.Bucket = "audit"

// counter names the tenant's counter of events, which is the newest seq, and toldCounter
// that of those that are no bookkeeping.
const (
	counter     = "audit"
	toldCounter = "audit.told"
)

// rowsEvent proves rows that no other event of their transaction does.
const rowsEvent = "rows.written"

// MaxEvent bounds one event's JSON, in bytes. What is larger belongs in a
// record of its own, with its digest in the event.
const MaxEvent = 4 << 20

// Event is one AuditEvent (model 1), never changed; it leaves by Ledger.Retire. Its stored JSON
// has the members in this order, so that a scan can filter on the head
// without decoding the payload.
type Event struct {
	TenantID  string    `json:"tenant_id"`
	TraceID   string    `json:"trace_id"`
	EventID   string    `json:"event_id"`
	EventType string    `json:"event_type"`
	CreatedAt time.Time `json:"created_at"`

	Seq   uint64         `json:"seq"` // 1-based place in the tenant's log
	Actor string         `json:"actor"`
	Kind  core.ActorKind `json:"actor_kind"`
	Door  core.Door      `json:"door"`
	// Prev is the seq of the previous event about the same subject, 0 if none.
	Prev uint64 `json:"prev,omitzero"`
	// Told counts the events up to this one that are no bookkeeping, and Routine says
	// that this one is; see Routine.
	Told    uint64 `json:"told"`
	Routine bool   `json:"routine,omitzero"`

	Payload core.Raw `json:"payload"`
}

// Payload is the shape of Event.Payload.
type Payload struct {
	Subject string   `json:"subject"`
	ID      string   `json:"id"`
	State   core.Raw `json:"state,omitzero"`
	Detail  core.Raw `json:"detail,omitzero"`
	// Rows are "BUCKET KEY DIGEST" of each row that the change wrote into an
	// audited bucket: the SHA-256 of its value in base64url, "-" when it was
	// removed, the number of a counter, whose bucket is "#". A key with other
	// bytes than letters, digits and ._:/@+-# is "~" and base64url.
	Rows []string `json:"rows,omitzero"`
}

// Entry is what a change says about itself. It becomes an Event whose payload
// is {"subject","id","state","detail","rows"}.
type Entry struct {
	Type    string // "task.queued", "judge.outcome", …
	Trace   string // "" takes a fresh trace id
	Subject string // kind of record: "task", "session", "agent", "approval", …
	ID      string
	// State is the subject's audited state after the change, a JSON object;
	// replaying the log folds these, and reconcile compares them with the
	// store. Leave nil when the event changes nothing, and use Gone (or the Raw
	// null) when the subject no longer exists. A core.Raw is written as it is: it must be one
	// compact JSON value.
	State any
	// Detail is everything else worth keeping: reason, error, digest.
	Detail any
	// RawState and RawDetail are State and Detail for those who write them on
	// every task's way, where these are nil. They are not looked at: whoever
	// gives them vouches that each is one compact JSON object.
	RawState, RawDetail core.Raw
	Prev                uint64 // seq of the subject's previous event, 0 if none
}

// Gone is the State of a subject that was removed.
var Gone = gone{}

type gone struct{}

func (gone) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func key(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// stamp is what all events of one transaction share.
type stamp struct {
	tenant string
	prefix string // of event ids: "ev_TAG_"
	by     core.Caller
	at     []byte // RFC 3339
}

// appendEvent appends the event's JSON to b, but for the rows of its payload
// and the two braces at its end. It is written by hand because it stands in the
// path of every change.
func (s *stamp) appendEvent(b []byte, seq, told uint64, e *Entry) ([]byte, error) {
	var err error
	quote := func(member, value string) {
		b = append(b, member...)
		var bad error
		if b, bad = jsontext.AppendQuote(b, value); bad != nil && err == nil {
			err = fmt.Errorf("%s: %w", member[2:len(member)-2], bad)
		}
	}
	put := func(member string, raw core.Raw) {
		if len(raw) > 0 && err == nil {
			b = append(append(b, member...), raw...)
		}
	}
	value := func(member string, v any) {
		if v == nil || err != nil {
			return
		}
		var raw core.Raw
		raw, err = encodeValue(v)
		put(member, raw)
	}
	quote(`{"tenant_id":`, s.tenant)
	quote(`,"trace_id":`, e.Trace)
	b = append(b, `,"event_id":"`...)
	b = appendID(b, s.prefix, seq)
	quote(`","event_type":`, e.Type)
	b = append(b, `,"created_at":"`...)
	b = append(b, s.at...)
	b = append(b, `","seq":`...)
	b = strconv.AppendUint(b, seq, 10)
	quote(`,"actor":`, s.by.Name)
	quote(`,"actor_kind":`, string(s.by.Kind))
	quote(`,"door":`, string(s.by.Door))
	if e.Prev > 0 {
		b = append(b, `,"prev":`...)
		b = strconv.AppendUint(b, e.Prev, 10)
	}
	b = append(b, `,"told":`...)
	b = strconv.AppendUint(b, told, 10)
	if Routine(e.Type) {
		b = append(b, `,"routine":true`...)
	}
	quote(`,"payload":{"subject":`, e.Subject)
	quote(`,"id":`, e.ID)
	start := len(b)
	value(`,"state":`, e.State)
	if err == nil && len(b) > start {
		err = checkState(e.State, b[start+len(`,"state":`):])
	}
	put(`,"state":`, e.RawState)
	value(`,"detail":`, e.Detail)
	put(`,"detail":`, e.RawDetail)
	if err == nil && len(b) > MaxEvent-2 {
		err = fmt.Errorf("%d bytes, at most %d are allowed", len(b), MaxEvent)
	}
	return b, err
}

// checkState wants an object, or null where it was meant: a nil pointer that
// happens to encode as null must not read as a removal.
func checkState(given any, state []byte) error {
	_, raw := given.(core.Raw)
	if state[0] == '{' || string(state) == "null" && (raw || given == Gone) {
		return nil
	}
	return fmt.Errorf("state is %s, want a JSON object or Gone", core.Clip(string(state)))
}

func encodeValue(v any) (core.Raw, error) {
	raw, ok := v.(core.Raw)
	if !ok {
		return core.Encode(v)
	}
	// A line break or a half value here would spoil the log for ever.
	for _, c := range raw {
		if c < ' ' {
			return nil, fmt.Errorf("raw JSON is not compact: control byte %#02x", c)
		}
	}
	if len(raw) > 0 && !raw.IsValid() {
		return nil, fmt.Errorf("raw JSON is not valid")
	}
	return raw, nil
}

// idPrefix is the fixed part of a tenant's event ids.
func idPrefix(tenant string) string {
	return core.EventPrefix + "_" + core.TenantTag(tenant) + "_"
}

// appendID appends what core.NewID makes, without hashing the tenant again.
func appendID(b []byte, prefix string, seq uint64) []byte {
	b = append(b, prefix...)
	for limit := uint64(1e9); limit > seq && limit > 1; limit /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, seq, 10)
}

// decode reads a stored event; the result keeps no reference to data.
func decode(data []byte) (Event, error) {
	var e Event
	if err := core.DecodeStored(data, &e); err != nil {
		return Event{}, fmt.Errorf("decode audit event: %w", err)
	}
	return e, nil
}
