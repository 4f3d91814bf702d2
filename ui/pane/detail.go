package pane

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// DetailSpec is what makes one sheet over a stored record different from
// another. A whole pane is:
//
//	func NewEvent(log Audit) *pane.Detail[audit.Event] {
//		return pane.NewDetail(pane.DetailSpec[audit.Event]{
//			Name: "event", Fetch: log.Get, Text: eventText,
//		})
//	}
//
//	func eventText(env pane.Env, e *audit.Event, out *pane.Paras) {
//		out.Add("type", e.EventType, screen.Text)
//		out.Head("payload")
//		out.JSON("", e.Payload)
//	}
type DetailSpec[T any] struct {
	Name string
	// Fetch reads the record with this id; a method of a service does.
	Fetch func(ctx context.Context, tenant, id string) (T, error)
	// Text writes the record out.
	Text func(env Env, t *T, out *Paras)
	// Item is what keys act on once the record was read; nil leaves it at the
	// kind and the id.
	Item func(t *T) Item
	// Title of a record that was read; nil is the kind and the id.
	Title func(env Env, t *T) string
	// Live says that the record changes: it is read again whenever the world
	// has. One that doesn't is read once.
	Live bool
	// Settled says that a live record has come to its end and is not read
	// again; nil is never.
	Settled func(t *T) bool
	// Log names the stream of Logs that is shown live below the record; nil is
	// none.
	Log  func(Item) string
	Logs Logs
}

// Detail is a pane that shows one stored record. Embed it; it implements Pane.
type Detail[T any] struct {
	LogRecord
	spec   DetailSpec[T]
	reader Reader[T]
	got    *T // nil until it was read
	err    error
}

// NewDetail makes the sheet of a spec.
func NewDetail[T any](spec DetailSpec[T]) *Detail[T] {
	d := &Detail[T]{spec: spec, LogRecord: LogRecord{Record: NewRecord(spec.Name)}, reader: NewReader[T](spec.Name)}
	if spec.Log != nil {
		d.Split = NewSplit(spec.Name, spec.Logs)
	}
	return d
}

// Show implements Pane; Refresh reads.
func (d *Detail[T]) Show(_ Env, it Item) tea.Cmd {
	if d.Bind(it) {
		d.got, d.err = nil, nil
		if d.spec.Log != nil {
			d.BindLog(d.spec.Log(it))
		}
	}
	return nil
}

func (d *Detail[T]) Reset() {
	d.LogRecord.Reset()
	d.got, d.err = nil, nil
}

func (d *Detail[T]) Refresh(env Env) tea.Cmd {
	d.lay(env)
	cmd := d.RefreshLog(env)
	if d.got != nil && (!d.spec.Live || d.spec.Settled != nil && d.spec.Settled(d.got)) {
		return cmd
	}
	tenant, id, fetch := env.Tenant, d.Record.Item().ID, d.spec.Fetch
	return tea.Batch(cmd, d.reader.Read(id, func(ctx context.Context) (T, error) { return fetch(ctx, tenant, id) }))
}

func (d *Detail[T]) Update(env Env, body any) tea.Cmd {
	if cmd, mine := d.TakeLog(env, body); mine {
		return cmd
	}
	a, ok := d.reader.Take(d.Record.Item().ID, body)
	if !ok {
		return nil
	}
	if d.err = a.Err; a.Err == nil {
		d.got = &a.Got
	}
	d.lay(env)
	if a.Again && d.spec.Live {
		return d.Refresh(env)
	}
	return nil
}

// lay writes out what was read, or why it could not be.
func (d *Detail[T]) lay(env Env) {
	var out Paras
	switch {
	case d.err != nil:
		out.Add("", d.err.Error(), screen.Bad)
	case d.got != nil:
		d.spec.Text(env, d.got, &out)
	default:
		return
	}
	d.Page.Set(out)
}

func (d *Detail[T]) Draw(c *screen.Canvas, env Env, focused bool) {
	if d.Stale(env) {
		d.lay(env)
	}
	d.LogRecord.Draw(c, env, focused)
}

func (d *Detail[T]) Selected(env Env) Item {
	it := d.Record.Selected(env)
	if d.got != nil && d.spec.Item != nil {
		row := it.Row
		it = d.spec.Item(d.got)
		it.Row = row
	}
	return it
}

func (d *Detail[T]) Title(env Env) string {
	if d.got == nil || d.spec.Title == nil {
		return d.Record.Title(env)
	}
	return d.spec.Title(env, d.got)
}
