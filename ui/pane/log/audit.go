// Package log has the panes of what was done, which the audit log tells, and of
// what the cockpit told its operator.
package log

import (
	"context"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
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

// List is the pane of the audit log, newest first: without bookkeeping, until that is
// asked for.
type List struct {
	*pane.Table[audit.Event]
	of  Audit
	all pane.Books
}

// NewAudit makes it.
func NewAudit(of Audit) *List {
	p := &List{of: of}
	p.Table = pane.NewTable(pane.Spec[audit.Event]{
		Name: AuditName, Title: "audit", Empty: "no events",
		Face: face.For[audit.Event](),
		Cells: map[string]pane.Cell[audit.Event]{
			"BY": func(env *pane.Env, e *audit.Event) (string, screen.Role) {
				return e.Actor + " (" + string(e.Door) + ")", screen.Text
			},
		},
		ID:    func(e *audit.Event) string { return e.EventID },
		Item:  eventItem,
		Fetch: of.Told,
	})
	return p
}

// Title implements pane.Pane.
func (p *List) Title(env pane.Env) string { return p.all.Title(p.Table.Title(env)) }

// Do implements pane.Pane.
func (p *List) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if !p.all.Turn(action) {
		return p.Table.Do(env, action)
	}
	fetch := p.of.Told
	if p.all {
		fetch = p.of.List
	}
	return p.Again(env, fetch), true
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
