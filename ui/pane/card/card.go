// Package card is the sheet of one approval: everything a person needs to
// decide well, in the order it is needed, and the rules for when an answer
// counts. It never answers by itself; the root asks Ready before it lets a
// key through.
package card

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/approvals"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "card"

// pastShown is how many past answers of the same shape the card lists.
const pastShown = 5

// Pane shows one approval.
type Pane struct {
	pane.Record
	reader  pane.Reader[judge.Approval]
	a       *judge.Approval
	err     error
	past    []judge.Approval
	shown   time.Time // when this approval, with this digest, was first drawn
	pretty  string    // the arguments, indented
	args    int       // their paragraph
	seen    bool      // their end has been on the screen
	told    bool      // the engine knows that it was shown
	pastFor string    // id and digest that past was asked for
	grounds *judge.Grounds
	files   *judge.Approval // with what its files hold; nil until that is known
}

// New makes the pane.
func New() *Pane {
	return &Pane{Record: pane.NewRecord(Name), reader: pane.NewReader[judge.Approval](Name)}
}

// Show implements pane.Pane.
func (p *Pane) Show(env pane.Env, it pane.Item) tea.Cmd {
	if !p.Bind(it) {
		return nil
	}
	p.a, p.err, p.past, p.pastFor, p.grounds, p.files = nil, nil, nil, "", nil, nil
	p.forget()
	return p.Refresh(env)
}

func (p *Pane) forget() { p.shown, p.seen, p.told = time.Time{}, false, false }

// Refresh takes the approval from the snapshot while it is open, and reads
// how it ended afterwards.
func (p *Pane) Refresh(env pane.Env) tea.Cmd {
	id := p.Item().ID
	if id == "" {
		return nil
	}
	i := slices.IndexFunc(env.Snap.Approvals, func(a *judge.Approval) bool { return a.ApprovalID == id })
	if i < 0 {
		if p.a != nil && p.a.Status != judge.Open {
			return nil
		}
		world, tenant := env.World, env.Tenant
		return p.reader.Read(id, func(ctx context.Context) (judge.Approval, error) { return world.Approval(ctx, tenant, id) })
	}
	return p.take(env, env.Snap.Approvals[i])
}

// take shows an approval. One whose digest changed is another question: it
// must be seen, and armed, anew.
func (p *Pane) take(env pane.Env, a *judge.Approval) tea.Cmd {
	if p.a != nil && (p.a.Digest != a.Digest || p.a.Status != a.Status) {
		p.forget()
	}
	fresh := p.a == nil || p.a.Digest != a.Digest || p.a.ApprovalID != a.ApprovalID
	p.a, p.err = a, nil
	if fresh {
		if p.pretty = pane.Pretty(a.Action.Args); p.pretty == "" {
			p.pretty = "{}"
		}
	}
	p.lay(env)
	if fresh {
		p.Page.Top()
	}
	if key := a.ApprovalID + " " + a.Digest; p.pastFor != key {
		p.pastFor = key
		world, tenant, of := env.World, env.Tenant, *a
		p.grounds, p.files = nil, nil
		return tea.Batch(pane.Ask(Name, func(ctx context.Context) any {
			found, err := world.Past(ctx, tenant, of, pastShown)
			if err != nil {
				return nil
			}
			return pastReply{of.ApprovalID, found}
		}), pane.Ask(Name, func(ctx context.Context) any {
			why, err := world.Grounds(ctx, tenant, of.ApprovalID)
			if err != nil { // what the approval itself says is on the card already
				return nil
			}
			return groundsReply{key, why}
		}), pane.Ask(Name, func(ctx context.Context) any {
			card, err := world.Card(ctx, tenant, of.ApprovalID)
			if err != nil { // the digests are on the card already
				return nil
			}
			return filesReply{key, card}
		}))
	}
	return nil
}

// groundsReply says why a card, by its id and digest, was put to a person.
type groundsReply struct {
	of  string
	why judge.Grounds
}

// filesReply says what the files of a card, by its id and digest, hold.
type filesReply struct {
	of   string
	card judge.Approval
}

type pastReply struct {
	id string
	of []judge.Approval
}

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	if r, ok := body.(pastReply); ok {
		if r.id == p.Item().ID && p.a != nil {
			p.past = r.of
			p.lay(env)
		}
		return nil
	}
	if r, ok := body.(filesReply); ok {
		if r.of == p.pastFor && p.a != nil {
			p.files, p.seen = &r.card, false
			p.lay(env)
		}
		return nil
	}
	if r, ok := body.(groundsReply); ok {
		if r.of == p.pastFor && p.a != nil {
			p.grounds = &r.why
			p.lay(env)
		}
		return nil
	}
	r, ok := p.reader.Take(p.Item().ID, body)
	if !ok {
		return nil
	}
	if r.Err != nil {
		p.err = r.Err
		p.a = nil
		p.Page.Set([]pane.Para{{Text: r.Err.Error(), Role: screen.Bad}})
		return nil
	}
	cmd := p.take(env, &r.Got)
	if r.Again {
		return tea.Batch(cmd, p.Refresh(env))
	}
	return cmd
}

// Approval is what the card shows, nil before it arrived.
func (p *Pane) Approval() *judge.Approval { return p.a }

// Drawn tells the card that it is on the screen at this moment. The root
// calls it after every update in which the card is visible.
func (p *Pane) Drawn(env pane.Env) tea.Cmd {
	if p.a == nil {
		return nil
	}
	if p.shown.IsZero() {
		p.shown = env.Now
	}
	if p.Page.Reached(p.args) {
		p.seen = true
	}
	if p.told || p.a.Status != judge.Open || env.ReadOnly {
		return nil
	}
	p.told = true
	world, by, id := env.World, env.Caller, p.a.ApprovalID
	return pane.Ask(Name, func(ctx context.Context) any {
		// A failure leaves shown_at unset in the record; the answer carries it too.
		_ = world.Shown(ctx, by, id)
		return nil
	})
}

// Ready reports whether the approval can be answered at all, and why not.
func (p *Pane) Ready() (bool, string) {
	switch {
	case p.a == nil:
		return false, "no approval is shown"
	case p.a.Status != judge.Open:
		return false, fmt.Sprintf("already %s", p.outcome())
	}
	return true, ""
}

// Armed reports whether it can be approved, and why not: a high risk one only
// after the end of its arguments was on the screen.
func (p *Pane) Armed() (bool, string) {
	if ok, why := p.Ready(); !ok {
		return false, why
	}
	if pane.HighRisk(p.a.Risk) && !p.seen {
		return false, "scroll to the end of the arguments first (" + string(p.a.Risk) + " risk)"
	}
	return true, ""
}

// Selected is the approval exactly as it was drawn.
func (p *Pane) Selected(pane.Env) pane.Item {
	if p.a == nil {
		return pane.Item{}
	}
	it := approvals.Item(p.a)
	if !p.shown.IsZero() {
		it.Shown = p.shown.UTC().Format(time.RFC3339Nano)
	}
	return it
}

// Title implements pane.Pane.
func (p *Pane) Title(env pane.Env) string {
	if p.a == nil {
		return "approval"
	}
	st := pane.ApprovalState(p.a)
	return "approval " + st.Label(env.Glyphs)
}

// outcome says how an answered approval ended, by whom and when.
func (p *Pane) outcome() string {
	a := p.a
	text := string(a.Status)
	if a.AnsweredBy != "" {
		text += " by " + a.AnsweredBy
	}
	if !a.AnsweredAt.IsZero() {
		text += " " + a.AnsweredAt.Format("15:04:05")
	}
	if a.SelfApproved {
		text += " (self-approved)"
	}
	for _, why := range []string{a.AnswerReason, a.VoidReason} {
		if why != "" {
			text += ": " + why
		}
	}
	return text
}

// Reset implements pane.Pane.
func (p *Pane) Reset() {
	p.Record.Reset()
	p.a, p.err, p.past, p.pastFor, p.grounds, p.files = nil, nil, nil, "", nil, nil
	p.forget()
}
