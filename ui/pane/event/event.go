// Package event is the sheet of one audit event.
package event

import (
	"context"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/audit"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "event"

// Pane shows an event. Events never change, so one read is enough.
type Pane struct {
	pane.Record
}

type got struct {
	event audit.Event
	err   error
}

// New makes the pane.
func New() *Pane { return &Pane{pane.NewRecord(Name)} }

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	if !p.Bind(it) {
		return nil
	}
	world, tenant := env.World, env.Tenant
	return p.Read(func(ctx context.Context) any {
		e, err := world.Event(ctx, tenant, it.ID)
		return got{e, err}
	})
}

// Refresh implements pane.Pane.
func (p *Pane) Refresh(pane.Env) tea.Cmd { return nil }

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	reply, _, ok := p.Taken(body)
	if !ok {
		return nil
	}
	var paras pane.Paras
	switch r := reply.(got); {
	case r.err != nil:
		paras.Add("", r.err.Error(), screen.Bad)
	default:
		e := r.event
		paras.Add("event", e.EventID, screen.Accent)
		paras.Add("type", e.EventType, screen.Text)
		paras.Add("seq", strconv.FormatUint(e.Seq, 10), screen.Text)
		paras.Add("at", pane.When(env.Now, e.CreatedAt), screen.Text)
		paras.Add("actor", string(e.Kind)+" "+e.Actor+" by "+string(e.Door), screen.Text)
		paras.Add("trace", e.TraceID, screen.Dim)
		if e.Prev > 0 {
			paras.Add("before it", "event "+strconv.FormatUint(e.Prev, 10)+" of the same subject", screen.Dim)
		}
		paras.Head("payload")
		paras.JSON("", e.Payload)
	}
	p.Page.Set(paras)
	return nil
}
