package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/gate"
)

// deadTime is how long keys are dead after a card was drawn or moved under the
// cursor, and after a question appeared.
const deadTime = 300 * time.Millisecond

// repeatGap is the longest delay before a held key repeats on a terminal that
// does not tell repeats apart: the same key again within it answers nothing.
const repeatGap = time.Second

// together is how soon after another a key comes that nobody typed: a terminal
// that does not bracket a paste sends it as keys.
const together = 30 * time.Millisecond

// aloneMsg: the time is over in which a key would show that the one before it
// was pasted.
type aloneMsg struct {
	presses uint64
	do      func() tea.Cmd
}

// alone does something unless another key comes together with this one.
func (an *answers) alone(do func() tea.Cmd) tea.Cmd {
	an.guard.held++
	return an.opt.After(together, aloneMsg{an.presses, do})
}

func (an *answers) wasAlone(msg aloneMsg) tea.Cmd {
	an.guard.held--
	if an.presses != msg.presses {
		return an.say(true, "", "nothing was approved: another key came together with that one, as in a paste")
	}
	return msg.do()
}

// guard keeps answers from happening by accident.
type guard struct {
	stamp  cardStamp
	from   time.Time // answers count from here on
	last   string    // the last key pressed
	lastAt time.Time
	asked  time.Time // the last time a guarded key was pressed
	// pressed is that key, for the record.
	pressed string
	// What is under the cursor, at which key it came there, and when it was
	// last replaced without a key.
	under   pane.Item
	place   string
	presses uint64
	slipped time.Time
	held    int // answers that wait to have been alone
}

// cardStamp is what an operator is looking at; any difference makes keys dead.
type cardStamp struct {
	visible bool
	id      string
	digest  string
	status  judge.ApprovalStatus
	row     int
	covered bool
	w, h    int
}

// press notes a key and reports whether it is a repeat, told or suspected.
func (g *guard) press(name string, told bool, now time.Time) bool {
	repeat := told || name == g.last && now.Sub(g.lastAt) < repeatGap
	g.last, g.lastAt = name, now
	return repeat
}

func (g *guard) settled(now time.Time) bool { return !now.Before(g.from) }

// quiet reports whether the next key would count, an answer or another.
func (g *guard) quiet(now time.Time) bool {
	return g.held == 0 && g.settled(now) && now.Sub(g.slipped) >= deadTime && (g.asked.IsZero() || now.Sub(g.asked) >= repeatGap)
}

// watchCard notices when what the operator looks at has changed.
func (an *answers) watchCard() tea.Cmd {
	s := cardStamp{}
	if a := an.card.Approval(); a != nil && an.place.visible(gate.CardName) {
		s = cardStamp{
			visible: true, id: a.ApprovalID, digest: a.Digest, status: a.Status, covered: an.over.Open(), w: an.w, h: an.h,
		}
		if len(an.place.open) == 0 { // the card follows the cursor of a list
			s.row = an.list.Position()
		}
	}
	if s == an.guard.stamp {
		return nil
	}
	an.guard.stamp = s
	an.guard.from = an.now.Add(deadTime)
	an.dirty = true
	return an.opt.After(deadTime, settled{})
}

// watchCursor notices when another thing comes under the cursor by itself,
// because the one that was there has gone.
func (an *answers) watchCursor() {
	p, g := an.focused(), &an.guard
	if p == nil || an.over.Open() {
		return
	}
	it := p.Selected(an.env())
	if it.Kind == g.under.Kind && it.ID == g.under.ID && p.Name() == g.place {
		g.presses = an.presses
		return
	}
	if p.Name() == g.place && g.presses == an.presses && !g.under.Empty() {
		g.slipped = an.now
	}
	g.under, g.place, g.presses = it, p.Name(), an.presses
}

// mayAnswer reports whether a key may answer an approval now, and why not. An
// answer is for the one on the card, or for those that are marked, which are listed
// before it is given.
func (an *answers) mayAnswer() (bool, string) {
	marked := len(an.markedApprovals()) > 0
	if !marked && (!an.place.visible(gate.CardName) || an.card.Approval() == nil) {
		if p := an.focused(); p != nil && p.Name() == gate.ApprovalsName {
			if it := an.selected(); !it.Empty() {
				an.openItem(it)
				return false, "read it first, then answer"
			}
		}
		return false, "no approval is shown"
	}
	if !an.guard.settled(an.now) {
		return false, "too early: what is shown has just changed"
	}
	if marked {
		return true, ""
	}
	return an.card.Ready()
}
