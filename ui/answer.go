package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/term"
)

// answer starts one of the ways to answer the approval on the card. What is
// sent names the id and digest that were drawn when the key was pressed.
func (m *Model) answer(how string) tea.Cmd {
	switch {
	case m.opt.Role != "" && !m.opt.Role.Includes(command.Approver):
		return m.say(true, "", fmt.Sprintf("your role %s can't answer approvals; approver can", m.opt.Role))
	case m.opt.ReadOnly:
		return m.say(true, "", "read-only: approvals can't be answered")
	}
	if marked := m.markedApprovals(); len(marked) > 0 {
		return m.answerMarked(how, marked)
	}
	it, a := m.card.Selected(m.env()), m.card.Approval()
	switch how {
	case "deny", "abort":
		return m.deny(it, how == "abort")
	case "defer":
		return m.deferIt(it)
	}
	if ok, why := m.card.Armed(); !ok {
		return m.say(false, "", why)
	}
	if a.Gate == judge.GateQuestion && (how == "approve" || how == "edit") {
		return m.answerQuestion(it, a)
	}
	switch how {
	case "approve":
		return m.withReason(a, func(reason []string, sure bool) tea.Cmd {
			return m.approveNow(it, a, reason, sure)
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

// approveNow sends the approval, if nothing was typed on the way.
func (m *Model) approveNow(it pane.Item, a *judge.Approval, more []string, sure bool) tea.Cmd {
	if sure {
		return m.alone(func() tea.Cmd { return m.submit(m.approval(it, more)) })
	}
	return m.approve(it, a, more, "")
}

// approve asks for a last y, since something was typed on the way: Enter never
// approves. always is the line of the rule that it makes, "" for none.
func (m *Model) approve(it pane.Item, a *judge.Approval, more []string, always string) tea.Cmd {
	text := fmt.Sprintf("Approve %s (%s risk)\n%s\ndigest %s\n%s", a.ApprovalID, a.Risk, pane.Headline(a), a.Digest, strings.Join(more, " "))
	if always != "" {
		text = "From now on: " + term.Reveal(always) + "\n" + text
	}
	return m.confirm(text, "", func() tea.Cmd { return m.submit(m.approval(it, more)) })
}

func (m *Model) approval(it pane.Item, more []string) job {
	return job{lines: [][]string{append(m.answerLine("approve", it), more...)}, targets: []pane.Item{it}, confirm: command.ConfirmNone}
}

func (m *Model) answerLine(verb string, it pane.Item) []string {
	line := []string{"approval", verb, it.ID, "--digest", it.Digest, "--pressed", m.answers.pressed}
	if it.Shown != "" {
		line = append(line, "--shown", it.Shown)
	}
	return line
}

// deny asks for the reason; the agent is told and goes on, or with abort the
// task ends blocked.
func (m *Model) deny(it pane.Item, abort bool) tea.Cmd {
	if abort {
		return m.denyWith(it, "Reason to deny and end the task", true)
	}
	return m.denyWith(it, "Reason to deny", false)
}

func (m *Model) denyWith(it pane.Item, title string, abort bool) tea.Cmd {
	return m.prompt(title, "", func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return m.say(true, "", "a denial needs a reason")
		}
		line := append(m.answerLine("deny", it), "--reason", text)
		if abort {
			line = append(line, "--abort")
		}
		return m.submit(job{lines: [][]string{line}, targets: []pane.Item{it}, confirm: command.ConfirmNone})
	})
}

// edit opens the arguments; the edited ones are validated and judged again by
// the engine before they run. An agent that can't be given any is told what to do
// instead.
func (m *Model) edit(it pane.Item, a *judge.Approval) tea.Cmd {
	if a.Fixed {
		return m.denyWith(it, "Deny, and say what to do instead", false)
	}
	return m.editor("Edit the arguments", pane.Pretty(a.Action.Args), func(text string) tea.Cmd {
		return m.withReason(a, func(reason []string, _ bool) tea.Cmd { return m.judgeEdit(it, text, reason) })
	})
}

// editedMsg is what an edit comes to, before it is approved.
type editedMsg struct {
	it     pane.Item
	text   string
	reason []string
	to     judge.Statement
	err    error
}

// judgeEdit has the engine judge edited arguments, so that the question shows their own
// digest: the approval holds for that alone.
func (m *Model) judgeEdit(it pane.Item, text string, reason []string) tea.Cmd {
	of, by := m.opt.Services.Judge, m.env().Caller
	ans := judge.Answer{Approve: true, Edit: core.Raw(text)}
	if len(reason) > 1 {
		ans.Reason = reason[1]
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), judging)
		defer cancel()
		s, _, err := of.Statement(ctx, by, it.ID, ans)
		return editedMsg{it, text, reason, s, err}
	}
}

// judging is how long an edit may take to be judged.
const judging = 10 * time.Second

// edited asks whether the edited arguments are approved.
func (m *Model) edited(e editedMsg) tea.Cmd {
	a := m.card.Approval()
	switch {
	case e.err != nil:
		return m.say(true, "", e.err.Error())
	case a == nil || a.ApprovalID != e.it.ID || a.Digest != e.it.Digest:
		return m.say(true, "", e.it.ID+" is no longer what was edited: look again")
	}
	line := append(m.answerLine("approve", e.it), "--edit", e.text, "--edited-digest", e.to.Digest)
	j := job{lines: [][]string{append(line, e.reason...)}, targets: []pane.Item{e.it}, confirm: command.ConfirmNone}
	text := fmt.Sprintf("Approve %s, edited (%s risk or more)\n%s\ndigest %s, in place of %.12s\n%s",
		a.ApprovalID, a.Risk, core.ClipTo(e.text, maxEditShown), e.to.Digest, a.Digest, strings.Join(e.reason, " "))
	return m.confirm(text, "", func() tea.Cmd { return m.submit(j) })
}

// maxEditShown is how much of edited arguments the question repeats, in bytes.
const maxEditShown = 400

// terms are those offered for an always-rule, the narrowest first.
var terms = []judge.Always{
	{Expires: judge.DefaultExpiry, MaxUses: judge.DefaultUses},
	{Expires: 8 * time.Hour, MaxUses: 20},
	{Expires: 24 * time.Hour, MaxUses: 50},
	{Expires: 7 * 24 * time.Hour, MaxUses: 100},
}

// forWhom says whom a rule is for, in a menu.
var forWhom = map[string]string{
	judge.ForAgent: "this agent", judge.ForRun: "this run of the task", judge.ForSession: "this session", judge.ForProject: "agents of this project", judge.ForAnyone: "anyone",
}

// always approves and makes a rule: whom it is for and for how long is chosen, and its
// line is shown before the last key. The answer names it by its digest.
func (m *Model) always(it pane.Item, a *judge.Approval) tea.Cmd {
	who := a.For()
	if len(who) == 0 {
		return m.say(true, "", "no rule can approve this: "+string(a.Risk)+" risk at "+string(a.Gate))
	}
	return m.alwaysLike(it, a, who, nil)
}

// alwaysLike is always where places of the arguments may be any.
func (m *Model) alwaysLike(it pane.Item, a *judge.Approval, who, places []string) tea.Cmd {
	like := "exactly this"
	if len(places) > 0 {
		like = "this with any " + strings.Join(places, ", ")
	}
	names := make([]string, len(who), len(who)+1)
	for i := range who {
		names[i] = like + ", by " + forWhom[who[i]]
	}
	if a.Risk != judge.High { // the engine accepts nothing wider
		names = append(names, "let arguments be any …")
	}
	return m.menu("Always approve", names, func(i int) tea.Cmd {
		if i == len(who) {
			return m.prompt("Any: argv.2, argv.2+, path, *, files", "", func(text string) tea.Cmd {
				return m.alwaysLike(it, a, who, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }))
			})
		}
		lasts := make([]string, len(terms))
		for n, t := range terms {
			lasts[n] = fmt.Sprintf("for %s, at most %d times", face.Span(t.Expires), t.MaxUses)
		}
		return m.menu("Always "+names[i], lasts, func(n int) tea.Cmd {
			want := terms[n]
			want.For, want.Any = who[i], places
			rule := a.Offer(want)
			more := []string{"--always", want.For, "--expires", want.Expires.String(), "--max-uses", strconv.Itoa(want.MaxUses), "--rule-digest", rule.Digest}
			for _, place := range places {
				more = append(more, "--any", place)
			}
			return m.withReason(a, func(reason []string, _ bool) tea.Cmd {
				return m.approve(it, a, append(more, reason...), rule.Line)
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
