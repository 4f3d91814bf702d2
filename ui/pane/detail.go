package pane

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// DetailSpec is what makes one sheet over a record different from
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
	// Reread, in place of Fetch, is told what it read before, nil at first: it reads
	// nothing anew that has not changed.
	Reread func(ctx context.Context, tenant, id string, was *T) (T, error)
	// Kept, in place of both, finds a record that is in memory; nil for one that is not
	// there, which Gone says.
	Kept func(env Env, id string) *T
	Gone string
	// Took is told of a record that was read. Text writes it out; nil for a pane that
	// draws what it Got.
	Took func(t *T)
	Text func(env Env, t *T, out *Paras)
	// Item is what keys act on once the record was read; nil leaves it at the
	// kind and the id.
	Item func(t *T) Item
	// Title of a record that was read; nil is the kind and the id. State goes on from it,
	// and is the first line of the text.
	Title func(t *T) string
	State func(env *Env, t *T) State
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

// Detail is a pane that shows one record. Embed it; it implements Pane.
type Detail[T any] struct {
	Record
	spec   DetailSpec[T]
	reader Reader[T]
	got    *T // nil until it was read
	err    error
}

// NewDetail makes the sheet of a spec.
func NewDetail[T any](spec DetailSpec[T]) *Detail[T] {
	d := &Detail[T]{spec: spec, Record: NewRecord(spec.Name), reader: NewReader[T](spec.Name)}
	if spec.Log != nil {
		d.Log = NewSplit(spec.Name, spec.Logs)
	}
	return d
}

// Got is what is shown, nil until it was read, and why the last read failed.
func (d *Detail[T]) Got() (*T, error) { return d.got, d.err }

// Show implements Pane; Refresh reads.
func (d *Detail[T]) Show(_ Env, it Item) tea.Cmd {
	if d.Bind(it) {
		d.got, d.err = nil, nil
		if d.spec.Log != nil {
			d.Log.bind(d.spec.Log(it))
		}
	}
	return nil
}

func (d *Detail[T]) Reset() {
	d.Record.Reset()
	d.got, d.err = nil, nil
}

func (d *Detail[T]) Refresh(env Env) tea.Cmd {
	spec, id, was := &d.spec, d.it.ID, d.got
	if spec.Kept != nil {
		d.got = spec.Kept(env, id)
	}
	d.Lay(env)
	cmd := d.Log.refresh(env)
	if spec.Kept != nil || d.got != nil && (!spec.Live || spec.Settled != nil && spec.Settled(d.got)) {
		return cmd
	}
	return tea.Batch(cmd, d.reader.Read(id, func(ctx context.Context) (T, error) {
		if spec.Reread != nil {
			return spec.Reread(ctx, env.Tenant, id, was)
		}
		return spec.Fetch(ctx, env.Tenant, id)
	}))
}

func (d *Detail[T]) Update(env Env, body any) tea.Cmd {
	if cmd, mine := d.Log.take(env, body); mine {
		return cmd
	}
	a, ok := d.reader.Take(d.it.ID, body)
	if !ok {
		return nil
	}
	if d.err = a.Err; a.Err == nil {
		d.got = &a.Got
		if d.spec.Took != nil {
			d.spec.Took(d.got)
		}
	}
	d.Lay(env)
	if a.Again && d.spec.Live {
		return d.Refresh(env)
	}
	return nil
}

// Lay writes out what was read, or why it could not be.
func (d *Detail[T]) Lay(env Env) {
	var out Paras
	switch {
	case d.spec.Text == nil || d.it.Empty():
		return
	case d.err != nil:
		out.Add("", d.err.Error(), screen.Bad)
	case d.got != nil:
		if d.spec.State != nil {
			out.State(&env, "state", d.spec.State(&env, d.got))
		}
		d.spec.Text(env, d.got, &out)
	default:
		out.Add("", d.spec.Gone, screen.Dim)
	}
	d.Page.Set(out)
}

func (d *Detail[T]) Draw(c *screen.Canvas, env Env, focused bool) {
	if d.Stale(env) {
		d.Lay(env)
	}
	d.Record.Draw(c, env, focused)
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
	title := d.Record.Title(env)
	if d.got == nil {
		return title
	}
	if d.spec.Title != nil {
		title = d.spec.Title(d.got)
	}
	if d.spec.State != nil {
		title += " " + d.spec.State(&env, d.got).Label(env.Glyphs)
	}
	return title
}
