// Package log has the panes of what was done, which the audit log tells, and of
// what the cockpit told its operator.
package log

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// AuditName is the pane's name and keymap scope.
const AuditName = "audit"

// Audit is what the panes read of the audit log; *audit.Ledger has it.
type Audit interface {
	Get(ctx context.Context, tenant, id string) (audit.Event, error)
	List(ctx context.Context, tenant string, f core.Filter) (core.Page[audit.Event], error)
	Told(ctx context.Context, tenant string, f core.Filter) (core.Page[audit.Event], error)
}

// NewAudit makes the pane of the audit log, newest first.
func NewAudit(of Audit) *pane.Table[audit.Event] {
	return pane.NewTable(pane.Spec[audit.Event]{
		Name: AuditName, Title: "audit", Empty: "no events",
		Face: face.For[audit.Event](),
		Cells: map[string]pane.Cell[audit.Event]{
			"BY": func(env *pane.Env, e *audit.Event) (string, screen.Role) {
				return e.Actor + " (" + string(e.Door) + ")", screen.Text
			},
			"WHAT": func(_ *pane.Env, e *audit.Event) (string, screen.Role) {
				return grid.Endings(face.What(e)), screen.Text
			},
		},
		Item: eventItem, Fetch: of.Told, All: of.List,
	})
}

// eventItem is an event as a thing under the cursor.
func eventItem(e *audit.Event) pane.Item {
	return pane.Item{Kind: "event", ID: e.EventID, Trace: e.TraceID}
}

// NewEvent makes the sheet of one audit event.
func NewEvent(of Audit) *pane.Detail[audit.Event] {
	return pane.NewDetail(pane.DetailSpec[audit.Event]{
		Name: "event", Fetch: of.Get, Text: eventText, Item: eventItem,
	})
}

func eventText(env pane.Env, e *audit.Event, out *pane.Paras) {
	out.Fields(&env, e, "event:event_id,accent type:event_type seq at:created_at")
	out.Add("actor", string(e.Kind)+" "+e.Actor+" by "+string(e.Door), screen.Text)
	out.Fields(&env, e, "trace:trace_id,dim")
	if e.Prev > 0 {
		out.Add("before it", "event "+strconv.FormatUint(e.Prev, 10)+" of the same subject", screen.Dim)
	}
	out.Document("payload", e.Payload)
}

// MessagesName is the pane's name and keymap scope.
const MessagesName = "messages"

// most is how many messages are kept; the oldest go first.
const most = 1000

// Message is one thing the cockpit told the operator.
type Message struct {
	At   time.Time
	Bad  bool
	Text string
	Line string // the command that it answers, "" for none
	seq  int
}

func (m *Message) id() string { return strconv.Itoa(m.seq) }

// Messages lists messages, newest first.
type Messages struct {
	*pane.Table[Message]
	all []Message
	seq int
}

// NewMessages makes the pane that keeps every message a toast has shown.
func NewMessages() *Messages {
	return &Messages{Table: pane.NewTable(pane.Spec[Message]{
		Name: MessagesName, Title: "messages", Empty: "no messages", NewestFirst: true,
		Cols: []grid.Column{
			{Title: "TIME", Min: 8, Priority: 1},
			{Title: "KIND", Min: 7, Priority: 2},
			{Title: "MESSAGE", Min: 20, Weight: 5},
			{Title: "COMMAND", Min: 12, Weight: 2, Priority: 3},
		},
		Row: func(env *pane.Env, m *Message, set func(int, string, screen.Role)) {
			set(0, pane.Clock(env.Now, m.At), screen.Dim)
			if m.Bad {
				set(1, "error", screen.Bad)
			} else {
				set(1, "info", screen.Good)
			}
			set(2, m.Text, screen.Text)
			set(3, m.Line, screen.Dim)
		},
		Item: func(m *Message) pane.Item { return pane.Item{Kind: "message", ID: m.id()} },
	})}
}

// Add keeps a message.
func (p *Messages) Add(env pane.Env, m Message) {
	p.seq++
	m.seq = p.seq
	p.all = append([]Message{m}, p.all[:min(len(p.all), most-1)]...)
	p.SetRows(env, p.all)
}

// Refresh shows what was kept.
func (p *Messages) Refresh(env pane.Env) tea.Cmd {
	p.SetRows(env, p.all)
	return nil
}

// Newest is the id of the message that was added last.
func (p *Messages) Newest() string { return strconv.Itoa(p.seq) }

// NewMessage makes the sheet of a message or of a command's whole output.
func NewMessage(from *Messages) *pane.Detail[Message] {
	return pane.NewDetail(pane.DetailSpec[Message]{
		Name: "message", Text: messageText, Gone: "it is no longer kept",
		Kept: func(_ pane.Env, id string) *Message {
			if i := slices.IndexFunc(from.all, func(m Message) bool { return m.id() == id }); i >= 0 {
				return &from.all[i]
			}
			return nil
		},
	})
}

func messageText(env pane.Env, m *Message, out *pane.Paras) {
	out.Add("at", pane.When(env.Now, m.At), screen.Dim)
	out.Add("command", m.Line, screen.Accent)
	role := screen.Text
	if m.Bad {
		role = screen.Bad
	}
	out.Head("what it said")
	head, rows, _ := strings.Cut(m.Text, "\n")
	table := !m.Bad && rows != "" && head == strings.ToUpper(head)
	*out = append(*out, pane.Para{Text: m.Text, Role: role, Exact: true, Wide: true, Table: table})
}
