package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/judge"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/approvals"
	"swarmdeck/ui/pane/card"
)

// deadTime is how long keys are dead after a card was drawn or moved under the
// cursor, and after a question appeared.
const deadTime = 300 * time.Millisecond

// repeatGap is the longest delay before a held key repeats on a terminal that
// does not tell repeats apart: the same key again within it answers nothing.
const repeatGap = time.Second

// guard keeps answers from happening by accident.
type guard struct {
	stamp  cardStamp
	from   time.Time // answers count from here on
	last   string    // the last key pressed
	lastAt time.Time
	asked  time.Time // the last time a guarded key was pressed
	// What is under the cursor, at which key it came there, and when it was
	// last replaced without a key.
	under   pane.Item
	place   string
	presses uint64
	slipped time.Time
	rang    time.Time
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

// quiet reports whether the next answer key would count.
func (g *guard) quiet(now time.Time) bool {
	return g.settled(now) && (g.asked.IsZero() || now.Sub(g.asked) >= repeatGap)
}

// watchCard notices when what the operator looks at has changed.
func (m *Model) watchCard() tea.Cmd {
	s := cardStamp{}
	if a := m.card.Approval(); a != nil && m.place.visible(card.Name) {
		s = cardStamp{
			visible: true, id: a.ApprovalID, digest: a.Digest, status: a.Status, covered: m.over.open(), w: m.w, h: m.h,
		}
		if len(m.place.open) == 0 { // the card follows the cursor of a list
			s.row = m.list.Position()
		}
	}
	if s == m.answers.stamp {
		return nil
	}
	m.answers.stamp = s
	m.answers.from = m.now.Add(deadTime)
	m.dirty = true
	return m.opt.After(deadTime, settled{})
}

// watchCursor notices when another thing comes under the cursor by itself,
// because the one that was there has gone.
func (m *Model) watchCursor() {
	p, g := m.focused(), &m.answers
	if p == nil || m.over.open() {
		return
	}
	it := p.Selected(m.env())
	if it.Kind == g.under.Kind && it.ID == g.under.ID && p.Name() == g.place {
		g.presses = m.presses
		return
	}
	if p.Name() == g.place && g.presses == m.presses && !g.under.Empty() {
		g.slipped = m.now
	}
	g.under, g.place, g.presses = it, p.Name(), m.presses
}

// mayAnswer reports whether a key may answer an approval now, and why not.
func (m *Model) mayAnswer() (bool, string) {
	if !m.place.visible(card.Name) || m.card.Approval() == nil {
		if p := m.focused(); p != nil && p.Name() == approvals.Name {
			if it := p.Selected(m.env()); !it.Empty() {
				m.openItem(it)
				return false, "read it first, then answer"
			}
		}
		return false, "no approval is shown"
	}
	if !m.answers.settled(m.now) {
		return false, "too early: what is shown has just changed"
	}
	return m.card.Ready()
}

// answer starts one of the ways to answer the approval on the card. What is
// sent names the id and digest that were drawn when the key was pressed.
func (m *Model) answer(how string) tea.Cmd {
	if m.opt.ReadOnly {
		return m.say(true, "", "read-only: approvals can't be answered")
	}
	it, a := m.card.Selected(m.env()), m.card.Approval()
	switch how {
	case "deny", "abort":
		return m.deny(it, how == "abort")
	case "defer":
		return m.deferIt(it)
	}
	if ok, why := m.card.Armed(); !ok {
		return m.say(true, "", why)
	}
	switch how {
	case "approve":
		return m.withReason(a, func(reason []string, sure bool) tea.Cmd {
			return m.approve(it, a, reason, sure)
		})
	case "edit":
		return m.edit(it, a)
	case "always":
		return m.always(it, a)
	}
	return nil
}

// withReason asks for the reason that a high risk needs.
func (m *Model) withReason(a *judge.Approval, then func(reason []string, sure bool) tea.Cmd) tea.Cmd {
	if !pane.HighRisk(a.Risk) {
		return then(nil, true)
	}
	return m.prompt("Reason to approve ("+string(a.Risk)+" risk)", "", func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return m.say(true, "", "a "+string(a.Risk)+" risk is approved with a reason only")
		}
		return then([]string{"--reason", text}, false)
	})
}

// approve sends the approval. When anything was typed on the way, a last y is
// asked for: Enter never approves.
func (m *Model) approve(it pane.Item, a *judge.Approval, more []string, sure bool) tea.Cmd {
	line := append(answerLine("approve", it), more...)
	j := job{lines: [][]string{line}, targets: []pane.Item{it}, confirm: command.ConfirmNone}
	if sure {
		return m.submit(j)
	}
	text := fmt.Sprintf("Approve %s (%s risk)\n%s\ndigest %s\n%s", a.ApprovalID, a.Risk, pane.Intent(a), a.Digest, strings.Join(more, " "))
	return m.confirm(text, "", func() tea.Cmd { return m.submit(j) })
}

func answerLine(verb string, it pane.Item) []string {
	line := []string{"approval", verb, it.ID, "--digest", it.Digest}
	if it.Shown != "" {
		line = append(line, "--shown", it.Shown)
	}
	return line
}

// deny asks for the reason; the agent is told and goes on, or with abort the
// task ends blocked.
func (m *Model) deny(it pane.Item, abort bool) tea.Cmd {
	title := "Reason to deny"
	if abort {
		title = "Reason to deny and end the task"
	}
	return m.prompt(title, "", func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return m.say(true, "", "a denial needs a reason")
		}
		line := append(answerLine("deny", it), "--reason", text)
		if abort {
			line = append(line, "--abort")
		}
		return m.submit(job{lines: [][]string{line}, targets: []pane.Item{it}, confirm: command.ConfirmNone})
	})
}

// edit opens the arguments; the edited ones are validated and judged again by
// the engine before they run.
func (m *Model) edit(it pane.Item, a *judge.Approval) tea.Cmd {
	return m.editor("Edit the arguments", pane.Pretty(a.Action.Args), func(text string) tea.Cmd {
		return m.withReason(a, func(reason []string, _ bool) tea.Cmd {
			return m.approve(it, a, append([]string{"--edit", text}, reason...), false)
		})
	})
}

// rules are the terms offered for an always-rule, the narrowest first.
var rules = []struct{ expires, uses string }{{"1h", "5"}, {"8h", "20"}, {"24h", "50"}, {"7d", "100"}}

// always approves and makes a rule for the same shape.
func (m *Model) always(it pane.Item, a *judge.Approval) tea.Cmd {
	if a.Risk == judge.Critical || a.Gate != judge.GateStart && a.Gate != judge.GateTool {
		return m.say(true, "", "no rule can approve this: "+string(a.Risk)+" risk at "+string(a.Gate))
	}
	scopes := []string{"exact", "tool", "agent", "session"}
	names := []string{"exact: these very arguments", "tool: this action, any arguments", "agent: this action by this agent", "session: this action in this session"}
	if a.Agent.Name == "" {
		i := slices.Index(scopes, "agent")
		scopes, names = slices.Delete(scopes, i, i+1), slices.Delete(names, i, i+1)
	}
	if a.Session == "" {
		i := slices.Index(scopes, "session")
		scopes, names = slices.Delete(scopes, i, i+1), slices.Delete(names, i, i+1)
	}
	if a.Risk == judge.High { // the engine accepts nothing wider
		scopes, names = scopes[:1], names[:1]
	}
	return m.menu("Always approve", names, func(scope int) tea.Cmd {
		terms := make([]string, len(rules))
		for i, r := range rules {
			terms[i] = fmt.Sprintf("for %s, at most %s times", r.expires, r.uses)
		}
		return m.menu("Always "+names[scope], terms, func(i int) tea.Cmd {
			more := []string{"--always", scopes[scope], "--expires", rules[i].expires, "--max-uses", rules[i].uses}
			return m.withReason(a, func(reason []string, _ bool) tea.Cmd {
				return m.approve(it, a, append(more, reason...), false)
			})
		})
	})
}

// deferIt puts the approval off.
func (m *Model) deferIt(it pane.Item) tea.Cmd {
	spans := []string{"5m", "15m", "1h", "4h"}
	return m.menu("Put it off for", spans, func(i int) tea.Cmd {
		return m.submit(job{lines: [][]string{{"approval", "defer", it.ID, "--for", spans[i]}}, targets: []pane.Item{it}})
	})
}

// visible reports whether a pane is on the screen.
func (p *placement) visible(name string) bool {
	_, ok := p.bound[name]
	return ok
}
