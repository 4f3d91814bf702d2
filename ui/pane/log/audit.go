// Package log has the panes of what was done, which the audit log tells, and of
// what the cockpit told its operator.
package log

import (
	"context"
	"strconv"

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
