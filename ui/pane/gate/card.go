package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// CardName is the pane's name and keymap scope.
const CardName = "card"

// Judge is what the panes read of the judge; *judge.Judge has it. Shown alone
// changes something: it records when an operator first saw a card.
type Judge interface {
	Approval(ctx context.Context, tenant, id string) (judge.Approval, error)
	// Card is an approval with what its files hold and what stands around it.
	Card(ctx context.Context, tenant, id string) (judge.Approval, error)
	Shown(ctx context.Context, by core.Caller, id string) error
	// Statement says what an answer would state, and judges an edit; it changes nothing.
	Statement(ctx context.Context, by core.Caller, id string, ans judge.Answer) (judge.Statement, bool, error)
	Decision(ctx context.Context, tenant, id string) (judge.GateDecision, error)
	Decisions(ctx context.Context, tenant string, f core.Filter) (core.Page[judge.GateDecision], error)
	Grounds(ctx context.Context, tenant, id string) (judge.Grounds, error)
	Policies(ctx context.Context, tenant string) ([]judge.Policy, error)
	GetPolicy(ctx context.Context, tenant, id string) (judge.PolicyDetail, error)
	Standing(ctx context.Context, tenant string) (judge.Standing, error)
	// TryCases and TryBacktest run a policy, without effect: they may take a
	// while.
	TryCases(ctx context.Context, by core.Caller, policy string) ([]judge.CaseResult, judge.TestsSummary, error)
	TryBacktest(ctx context.Context, by core.Caller, policy string, last int) (judge.BacktestReport, error)
}

// Card shows one approval.
type Card struct {
	pane.Record
	judge   Judge
	reader  pane.Reader[judge.Approval]
	a       *judge.Approval
	shown   time.Time // when this approval, with this digest, was first drawn
	args    *arguments
	end     int    // the last paragraph of what would be done
	seen    bool   // its end has been on the screen
	told    bool   // the engine knows that it was shown
	asked   string // id and digest that the rest was asked for
	grounds *judge.Grounds
	card    *judge.Approval // with what its files hold and what stands around it; nil until that is known
}

// NewCard makes the sheet of one approval: everything a person needs to decide
// well, in the order it is needed, and the rules for when an answer counts. It
// never answers by itself; the root asks Ready before it lets a key through.
func NewCard(of Judge) *Card {
	return &Card{judge: of, Record: pane.NewRecord(CardName), reader: pane.NewReader[judge.Approval](CardName)}
}

func (p *Card) Show(env pane.Env, it pane.Item) tea.Cmd {
	if !p.Bind(it) {
		return nil
	}
	p.clear()
	return p.Refresh(env)
}

// clear forgets the approval, and forget that it was shown.
func (p *Card) clear() {
	p.a, p.asked, p.grounds, p.card = nil, "", nil, nil
	p.forget()
}

func (p *Card) forget() { p.shown, p.seen, p.told = time.Time{}, false, false }

// Refresh takes the approval from the snapshot while it is open, and reads
// how it ended afterwards.
func (p *Card) Refresh(env pane.Env) tea.Cmd {
	id := p.Item().ID
	if id == "" {
		return nil
	}
	i := slices.IndexFunc(env.Snap.Approvals, func(a *judge.Approval) bool { return a.ApprovalID == id })
	if i < 0 {
		if p.a != nil && p.a.Status != judge.Open {
			return nil
		}
		tenant := env.Tenant
		return p.reader.Read(id, func(ctx context.Context) (judge.Approval, error) { return p.judge.Approval(ctx, tenant, id) })
	}
	return p.take(env, env.Snap.Approvals[i])
}

// take shows an approval. One whose digest changed is another question: it
// must be seen, and armed, anew.
func (p *Card) take(env pane.Env, a *judge.Approval) tea.Cmd {
	if p.a != nil && (p.a.Digest != a.Digest || p.a.Status != a.Status) {
		p.forget()
	}
	fresh := p.a == nil || p.a.Digest != a.Digest || p.a.ApprovalID != a.ApprovalID
	p.a = a
	if fresh {
		p.args = newArguments(a.Action.Args, nil, env.Colored)
	}
	p.lay(env)
	if fresh {
		p.Page.Top()
	}
	if key := a.ApprovalID + " " + a.Digest; p.asked != key {
		p.asked = key
		p.grounds, p.card = nil, nil
		of, tenant, id := p.judge, env.Tenant, a.ApprovalID
		return pane.Ask(CardName, func(ctx context.Context) any {
			r := rest{of: key} // what can't be read is left out: the rule and the digests are on the card already
			if why, err := of.Grounds(ctx, tenant, id); err == nil {
				r.why = &why
			}
			if card, err := of.Card(ctx, tenant, id); err == nil {
				r.card = &card
			}
			return r
		})
	}
	return nil
}

// rest is what there is beside a card, which it names by its id and digest: why it was put
// to a person, and what its files hold.
type rest struct {
	of   string
	why  *judge.Grounds
	card *judge.Approval
}

func (p *Card) Update(env pane.Env, body any) tea.Cmd {
	if r, ok := body.(rest); ok {
		if r.of != p.asked || p.a == nil {
			return nil
		}
		if p.grounds = r.why; r.card != nil {
			p.card, p.seen = r.card, false
			p.args = newArguments(p.a.Action.Args, r.card.Changes, env.Colored)
		}
		p.lay(env)
		return nil
	}
	r, ok := p.reader.Take(p.Item().ID, body)
	if !ok {
		return nil
	}
	if r.Err != nil {
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

// Do implements pane.Pane: all arguments are shown as they are, or what no diff shows.
func (p *Card) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action != "arguments" || p.a == nil {
		return p.Record.Do(env, action)
	}
	p.args.all = !p.args.all
	p.seen = false
	p.lay(env)
	return nil, true
}

// Picture implements pane.Viewer: the changes, to be read file by file.
func (p *Card) Picture(pane.Env) pane.Item {
	if p.card == nil || len(p.card.Changes) == 0 {
		return pane.Item{}
	}
	return pane.Item{Kind: "diff", ID: "approval:" + p.a.ApprovalID, Approval: p.a.ApprovalID, Agent: p.a.Agent.Name, Task: p.a.TaskID}
}

// Want implements pane.Wanter: a diff is read in lines that are not broken.
func (p *Card) Want(pane.Env, int) (least, all int) {
	if p.args == nil || p.args.wide == 0 {
		return 0, 0
	}
	return p.args.wide + 2, p.args.wide + 2
}

// Approval is what the card shows, nil before it arrived.
func (p *Card) Approval() *judge.Approval { return p.a }

// Drawn tells the card that it is on the screen at this moment. The root
// calls it after every update in which the card is visible.
func (p *Card) Drawn(env pane.Env) tea.Cmd {
	if p.a == nil {
		return nil
	}
	if p.shown.IsZero() {
		p.shown = env.Now
	}
	if p.Page.Reached(p.end) {
		p.seen = true
	}
	if p.told || p.a.Status != judge.Open || env.ReadOnly {
		return nil
	}
	p.told = true
	by, id := env.Caller, p.a.ApprovalID
	return pane.Ask(CardName, func(ctx context.Context) any {
		// A failure leaves shown_at unset in the record; the answer carries it too.
		_ = p.judge.Shown(ctx, by, id)
		return nil
	})
}

// Ready reports whether the approval can be answered at all, and why not.
func (p *Card) Ready() (bool, string) {
	switch {
	case p.a == nil:
		return false, "no approval is shown"
	case p.a.Status != judge.Open:
		return false, fmt.Sprintf("already %s", outcome(p.a))
	}
	return true, ""
}

// Armed reports whether it can be approved, and why not: a high risk one only
// after the end of what it would do was on the screen.
func (p *Card) Armed() (bool, string) {
	if ok, why := p.Ready(); !ok {
		return false, why
	}
	if pane.HighRisk(p.a.Risk) && !p.seen {
		return false, "scroll to the end of the arguments first (" + string(p.a.Risk) + " risk)"
	}
	return true, ""
}

// Selected is the approval exactly as it was drawn.
func (p *Card) Selected(pane.Env) pane.Item {
	if p.a == nil {
		return pane.Item{}
	}
	it := ApprovalItem(p.a)
	if !p.shown.IsZero() {
		it.Shown = p.shown.UTC().Format(time.RFC3339Nano)
	}
	return it
}

func (p *Card) Title(env pane.Env) string {
	if p.a == nil {
		return "approval"
	}
	st := pane.ApprovalState(p.a)
	return "approval " + st.Label(env.Glyphs)
}

func (p *Card) Reset() {
	p.Record.Reset()
	p.clear()
}
