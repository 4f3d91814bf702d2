package dag

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// EventRef names an event.
type EventRef struct {
	EventID string `json:"event_id" is:"event"`
}

// ExtRef names something outside: a stream, a tar, a digest.
type ExtRef struct {
	Kind string `json:"kind" is:"name"`
	ID   string `json:"id" is:"uri"`
}

// Place is a PathRef or a UriRef: exactly one of the two.
type Place struct {
	Path string `json:"path,omitempty" is:"uri?"`
	URI  string `json:"uri,omitempty" is:"uri?"`
}

func (p *Place) check(f *problems) {
	switch {
	case p.Path == "" && p.URI == "":
		f.add("", "missing; allowed: {path} or {uri}")
	case p.Path != "" && p.URI != "":
		f.add("", "has path and uri; allowed: one of them")
	}
}

// InputRef is an EventRef or the NodeId of a Message.
type InputRef struct {
	Event   string // "" when it is a message
	Message string
}

func (r *InputRef) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return core.Decode(data, &r.Message)
	}
	var e EventRef
	if err := core.Decode(data, &e); err != nil {
		return err
	}
	if e.EventID == "" {
		return core.Errorf(core.InvalidInput, "event_id: missing")
	}
	r.Event = e.EventID
	return nil
}

func (r InputRef) MarshalJSON() ([]byte, error) {
	if r.Event != "" {
		return core.Encode(EventRef{r.Event})
	}
	return core.Encode(r.Message)
}

func (r *InputRef) check(f *problems) {
	if r.Event != "" {
		f.eventID("event_id", r.Event)
		return
	}
	f.name("", r.Message)
}

// Time is a timestamp of the record: ISO 8601 in UTC, with a Z.
type Time struct{ at time.Time }

// At is a time as the record writes it, in UTC.
func At(t time.Time) Time { return Time{t.UTC()} }

// Time is the point in time.
func (t Time) Time() time.Time { return t.at }

// IsZero reports that there is none.
func (t Time) IsZero() bool { return t.at.IsZero() }

// String is the time as the record writes it.
func (t Time) String() string { return t.at.Format(time.RFC3339Nano) }

func (t *Time) UnmarshalText(text []byte) error {
	at, err := ParseTime(string(text))
	*t = at
	return err
}

func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// ParseTime reads a timestamp. Years are those that keys can sort by.
func ParseTime(text string) (Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !strings.HasSuffix(text, "Z") || at.Year() < 1970 {
		return Time{}, fmt.Errorf("%q is not allowed; allowed: a UTC time such as 2026-01-02T15:04:05.678Z", core.Clip(text))
	}
	return Time{at}, nil
}

// Valid is the time over which a node or edge holds. A zero From is the time
// of the event that states it, a zero To means from then on.
type Valid struct {
	From Time `json:"valid_from,omitzero"`
	To   Time `json:"valid_to,omitzero"`
}

func (v Valid) check(f *problems, at Time) {
	from := v.From
	if from.IsZero() {
		from = at
	}
	if !v.To.IsZero() && v.To.at.Before(from.at) {
		f.add("valid_to", "%s is before it begins", v.To)
	}
}
