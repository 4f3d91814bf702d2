package pane

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/screen"
)

// Record is what every sheet shares: the thing it is bound to, its page of
// paragraphs, scrolling and search, and the live log below it, where it has one.
type Record struct {
	name string
	it   Item
	Page Page
	Log  Split
	find string
	laid time.Time
}

// NewRecord makes an unbound record for a pane.
func NewRecord(name string) Record { return Record{name: name} }

func (r *Record) Name() string { return r.name }

func (r *Record) Kind() Kind { return Sheet }

// Bind points the record at a thing and reports whether that is a new one.
func (r *Record) Bind(it Item) bool {
	if it.Kind == r.it.Kind && it.ID == r.it.ID {
		return false
	}
	r.it, r.find = it, ""
	r.Page.Find("")
	r.Page.Set(nil)
	r.Page.Top()
	return true
}

// Item is what the record is bound to.
func (r *Record) Item() Item { return r.it }

// Selected implements Pane: the record, with the line under the page's cursor
// for copying.
func (r *Record) Selected(Env) Item {
	it := r.it
	it.Row = r.Page.Row()
	return it
}

func (r *Record) Open(Env) Item { return r.Page.Item() }

// Marks implements Pane: a sheet has none.
func (r *Record) Marks() []Item { return nil }

func (r *Record) ClearMarks() {}

func (r *Record) Title(Env) string { return r.it.String() }

// Filter searches the page and the log.
func (r *Record) Filter(env Env, text string) (tea.Cmd, error) {
	r.find = text
	r.Page.Find(text)
	return r.Log.search(env, text), nil
}

func (r *Record) FilterText() string { return r.find }

func (r *Record) Reset() {
	r.Bind(Item{})
	r.Log.bind("")
}

// Resize implements Pane: what is as wide as the pane is written out anew.
func (r *Record) Resize(w, h int) {
	if w != r.Log.w {
		r.laid = time.Time{}
	}
	r.Log.resize(&r.Page, w, h)
}

func (r *Record) Do(env Env, action string) (tea.Cmd, bool) { return r.Log.do(env, &r.Page, action) }

// Stale reports, at most once a second, that what was written out may say how
// long ago something was: Draw of a pane writes it out anew.
func (r *Record) Stale(env Env) bool {
	if since := env.Now.Sub(r.laid); since >= 0 && since < time.Second {
		return false
	}
	r.laid = env.Now
	return true
}

func (r *Record) Draw(c *screen.Canvas, env Env, focused bool) { r.Log.draw(c, env, &r.Page, focused) }
