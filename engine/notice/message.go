package notice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// Message is one thing to send: the body and the id under which it is sent, as
// often as it takes.
type Message struct {
	ID   string    `json:"id"` // of A-Z a-z 0-9 _ -
	At   time.Time `json:"at"`
	Body core.Raw  `json:"body"` // one JSON object, see Body
	Upto uint64    `json:"upto"` // seq of the newest event in it
}

// Body is what a message says, in the shape that Standard Webhooks proposes:
// type, timestamp, data.
type Body struct {
	Type      string    `json:"type"` // the event's type, "notice.summary" or "notice.test"
	Timestamp time.Time `json:"timestamp"`
	Text      string    `json:"text"` // one line for people
	Data      any       `json:"data"`
}

// Event is the data of a message about one event.
type Event struct {
	TenantID  string    `json:"tenant_id"`
	TraceID   string    `json:"trace_id"`
	EventID   string    `json:"event_id"`
	EventType string    `json:"event_type"`
	CreatedAt time.Time `json:"created_at"`
	Notice    string    `json:"notice"`
	Actor     string    `json:"actor"`
	Subject   string    `json:"subject"`
	ID        string    `json:"id"`
	Approval  *Approval `json:"approval,omitempty"`
	Detail    core.Raw  `json:"detail,omitzero"` // the event's, left out when it is large or may hold arguments
}

// Approval is what is told of an approval: not its arguments, which may hold
// what the other side should not see.
type Approval struct {
	ApprovalID string               `json:"approval_id"`
	TaskID     string               `json:"task_id,omitempty"`
	Status     judge.ApprovalStatus `json:"status"` // when the message was made
	Gate       judge.Gate           `json:"gate"`
	Kind       string               `json:"kind"`
	Tool       string               `json:"tool,omitempty"`
	Agent      string               `json:"agent,omitempty"`
	Headline   string               `json:"headline"` // what would be done, as the engine reads it
	Intent     string               `json:"intent"`
	Risk       judge.Risk           `json:"risk"`
	ReasonCode string               `json:"reason_code"`
	DeadlineAt time.Time            `json:"deadline_at,omitzero"`
}

// Summary is the data of a message about many events: those held back by the
// rate, or too old to be told one by one.
type Summary struct {
	TenantID string         `json:"tenant_id"`
	Notice   string         `json:"notice"`
	Count    int            `json:"count"`
	Types    map[string]int `json:"types"`
	From     time.Time      `json:"from"`
	To       time.Time      `json:"to"`
	Events   []Line         `json:"events"` // the first of them
}

// Line is one event of a summary.
type Line struct {
	EventID   string    `json:"event_id"`
	EventType string    `json:"event_type"`
	CreatedAt time.Time `json:"created_at"`
	Text      string    `json:"text"`
}

const (
	maxDetail = 8 << 10
	maxLine   = 300
	maxLines  = 20 // events that a summary names
)

// about is the message of one event.
func about(n *Notice, e *audit.Event, p *audit.Payload, a *judge.Approval) Message {
	data := Event{
		TenantID: e.TenantID, TraceID: e.TraceID, EventID: e.EventID, EventType: e.EventType, CreatedAt: e.CreatedAt,
		Notice: n.Name, Actor: e.Actor, Subject: p.Subject, ID: p.ID,
	}
	if a != nil {
		data.Approval = &Approval{
			ApprovalID: a.ApprovalID, TaskID: a.TaskID, Status: a.Status, Gate: a.Gate, Kind: a.Action.Kind, Tool: plain(a.Action.Tool),
			Agent: a.Agent.Name, Headline: plain(a.Subject.Headline), Intent: plain(a.Intent), Risk: a.Risk, ReasonCode: a.ReasonCode, DeadlineAt: a.DeadlineAt,
		}
	} else if p.Subject != "approval" && len(p.Detail) <= maxDetail {
		data.Detail = p.Detail
	}
	return Message{
		ID: "msg_" + e.EventID + "_" + n.Name, At: e.CreatedAt, Upto: e.Seq,
		Body: core.MustEncode(Body{Type: e.EventType, Timestamp: e.CreatedAt, Text: text(e, p, a), Data: data}),
	}
}

// text says an event in one line.
func text(e *audit.Event, p *audit.Payload, a *judge.Approval) string {
	if a != nil {
		what := map[string]string{
			"approval.opened": "needs an answer", "approval.escalated": "still needs an answer", "approval.expired": "was denied: nobody answered in time",
		}[e.EventType]
		line := fmt.Sprintf("%s approval %s %s: %s", a.Risk, a.ApprovalID, cmp.Or(what, e.EventType), a.Subject.Headline)
		if a.Status == judge.Open {
			if !a.DeadlineAt.IsZero() {
				line += ", until " + a.DeadlineAt.UTC().Format("15:04:05 MST")
			}
		} else if e.EventType != "approval.expired" {
			line += ", is " + string(a.Status) + " by now"
		}
		return plain(line)
	}
	line := fmt.Sprintf("%s %s: %s", p.Subject, p.ID, strings.TrimPrefix(e.EventType, p.Subject+"."))
	var why struct {
		Reason  string `json:"reason"`
		Text    string `json:"text"`
		Message string `json:"message"`
		To      string `json:"to"`
		Error   any    `json:"error"`
	}
	_ = core.DecodeStored(p.Detail, &why) // a detail of another shape says nothing more
	failed := ""
	switch err := why.Error.(type) {
	case string:
		failed = err
	case map[string]any:
		failed, _ = err["code"].(string)
	}
	for _, part := range []string{why.To, cmp.Or(why.Reason, why.Text, why.Message, failed)} {
		if part != "" {
			line += ", " + part
		}
	}
	return plain(line)
}

// plain is a line that can be shown anywhere: what agents said goes into it.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > maxLine {
		s = string(r[:maxLine-1]) + "…"
	}
	return s
}

// digest gathers what is told in one message.
type digest struct {
	sum   Summary
	first Message // the only one, as long as it is
	last  string  // id of the newest event
}

func (d *digest) empty() bool { return d.sum.Count == 0 }

func (d *digest) add(n *Notice, e *audit.Event, p *audit.Payload, a *judge.Approval) {
	if d.empty() {
		d.sum = Summary{TenantID: e.TenantID, Notice: n.Name, Types: map[string]int{}, From: e.CreatedAt}
		d.first = about(n, e, p, a)
	}
	d.sum.Count++
	d.sum.Types[e.EventType]++
	d.sum.To, d.last = e.CreatedAt, e.EventID
	if len(d.sum.Events) < maxLines {
		d.sum.Events = append(d.sum.Events, Line{e.EventID, e.EventType, e.CreatedAt, text(e, p, a)})
	}
}

// message empties the digest.
func (d *digest) message(upto uint64) Message {
	sum, m := d.sum, d.first
	last := d.last
	*d = digest{}
	m.Upto = upto
	if sum.Count == 1 {
		return m
	}
	parts := core.Map(slices.Sorted(maps.Keys(sum.Types)), func(t string) string { return fmt.Sprintf("%d %s", sum.Types[t], t) })
	line := plain(fmt.Sprintf("%d events from %s to %s: %s", sum.Count, sum.From.UTC().Format(time.RFC3339), sum.To.UTC().Format(time.RFC3339), strings.Join(parts, ", ")))
	return Message{
		ID: "msg_" + last + "_" + sum.Notice + "_summary", At: sum.To, Upto: upto,
		Body: core.MustEncode(Body{Type: "notice.summary", Timestamp: sum.To, Text: line, Data: sum}),
	}
}
