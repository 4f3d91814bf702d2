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
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/term"
)

// answers is how approvals are answered.
type answers struct{ *runner }

// answer starts one of the ways to answer the approval on the card. What is
// sent names the id and digest that were drawn when the key was pressed.
func (an *answers) answer(how string) tea.Cmd {
	switch {
	case an.opt.Role != "" && !an.opt.Role.Includes(command.Approver):
		return an.say(true, "", fmt.Sprintf("your role %s can't answer approvals; approver can", an.opt.Role))
	case an.opt.ReadOnly:
		return an.say(true, "", "read-only: approvals can't be answered")
	}
	if marked := an.markedApprovals(); len(marked) > 0 {
		return an.answerMarked(how, marked)
	}
	it, a := an.card.Selected(an.env()), an.card.Approval()
	switch how {
	case "deny", "abort":
		title := map[string]string{"deny": "Reason to deny", "abort": "Reason to deny and end the task"}[how]
		return an.denyWith(it, title, how == "abort")
	case "defer":
		spans := []string{"5m", "15m", "1h", "4h"}
		return an.menu("Put it off for", spans, func(i int) tea.Cmd {
			return an.submit(job{lines: [][]string{{"approval", "defer", it.ID, "--for", spans[i]}}, targets: []pane.Item{it}})
		})
	}
	if ok, why := an.card.Armed(); !ok {
		return an.say(false, "", why)
	}
	if a.Gate == judge.GateQuestion && (how == "approve" || how == "edit") {
		return an.answerQuestion(it, a)
	}
	switch how {
	case "approve":
		return an.withReason(a, func(reason []string, sure bool) tea.Cmd {
			return an.approveNow(it, a, reason, sure)
		})
	case "edit":
		if a.Fixed {
			return an.denyWith(it, "Deny, and say what to do instead", false)
		}
		return an.editor("Edit the arguments", pane.Pretty(a.Action.Args), func(text string) tea.Cmd {
			return an.withReason(a, func(reason []string, _ bool) tea.Cmd { return an.judgeEdit(it, text, reason) })
		})
	case "always":
		who := a.For()
		if len(who) == 0 {
			return an.say(true, "", "no rule can approve this: "+string(a.Risk)+" risk, "+a.Action.Kind+" at "+string(a.Gate))
		}
		return an.alwaysLike(it, a, who, nil)
	}
	return nil
}

// withReason asks for the reason that a high risk needs.
func (an *answers) withReason(a *judge.Approval, then func(reason []string, sure bool) tea.Cmd) tea.Cmd {
	if !pane.HighRisk(a.Risk) {
		return then(nil, true)
	}
	return an.prompt("Reason to approve ("+string(a.Risk)+" risk)", func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return an.say(true, "", "a "+string(a.Risk)+" risk is approved with a reason only")
		}
		return then([]string{"--reason", text}, false)
	})
}

// approveNow sends the approval, if nothing was typed on the way.
func (an *answers) approveNow(it pane.Item, a *judge.Approval, more []string, sure bool) tea.Cmd {
	if sure {
		return an.alone(func() tea.Cmd { return an.submit(an.approval(it, more)) })
	}
	return an.approve(it, a, more, "")
}

// approve asks for a last y, since something was typed on the way: Enter never
// approves. always is the line of the rule that it makes, "" for none.
func (an *answers) approve(it pane.Item, a *judge.Approval, more []string, always string) tea.Cmd {
	text := fmt.Sprintf("Approve %s (%s risk)\n%s\ndigest %s\n%s", a.ApprovalID, a.Risk, pane.Headline(a), a.Digest, strings.Join(more, " "))
	if always != "" {
		text = "From now on: " + term.Reveal(always) + "\n" + text
	}
	return an.confirm(text, "", func() tea.Cmd { return an.submit(an.approval(it, more)) })
}

func (an *answers) approval(it pane.Item, more []string) job {
	return job{lines: [][]string{append(an.answerLine("approve", it), more...)}, targets: []pane.Item{it}, confirm: command.ConfirmNone}
}

func (an *answers) answerLine(verb string, it pane.Item) []string {
	line := []string{"approval", verb, it.ID, "--digest", it.Digest, "--pressed", an.guard.pressed}
	if it.Shown != "" {
		line = append(line, "--shown", it.Shown)
	}
	return line
}

func (an *answers) denyWith(it pane.Item, title string, abort bool) tea.Cmd {
	return an.prompt(title, func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return an.say(true, "", "a denial needs a reason")
		}
		line := append(an.answerLine("deny", it), "--reason", text)
		if abort {
			line = append(line, "--abort")
		}
		return an.submit(job{lines: [][]string{line}, targets: []pane.Item{it}, confirm: command.ConfirmNone})
	})
}

// judgeEdit has the engine judge edited arguments, so that the question shows their own
// digest: the approval holds for that alone.
func (an *answers) judgeEdit(it pane.Item, text string, reason []string) tea.Cmd {
	of, by := an.opt.Services.Judge, an.env().Caller
	ans := judge.Answer{Approve: true, Edit: core.Raw(text)}
	if len(reason) > 1 {
		ans.Reason = reason[1]
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), judging)
		defer cancel()
		s, _, err := of.Statement(ctx, by, it.ID, ans)
		return followUp(func() tea.Cmd { return an.edited(it, text, reason, s.Digest, err) })
	}
}

// judging is how long an edit may take to be judged.
const judging = 10 * time.Second

// edited asks whether the edited arguments, which have a digest of their own, are approved.
func (an *answers) edited(it pane.Item, text string, reason []string, digest string, err error) tea.Cmd {
	a := an.card.Approval()
	switch {
	case err != nil:
		return an.say(true, "", err.Error())
	case a == nil || a.ApprovalID != it.ID || a.Digest != it.Digest:
		return an.say(true, "", it.ID+" is no longer what was edited: look again")
	}
	more := append([]string{"--edit", text, "--edited-digest", digest}, reason...)
	asks := fmt.Sprintf("Approve %s, edited (%s risk or more)\n%s\ndigest %s, in place of %.12s\n%s",
		a.ApprovalID, a.Risk, core.ClipTo(text, maxEditShown), digest, a.Digest, strings.Join(reason, " "))
	return an.confirm(asks, "", func() tea.Cmd { return an.submit(an.approval(it, more)) })
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

// alwaysLike is always where places of the arguments may be any.
func (an *answers) alwaysLike(it pane.Item, a *judge.Approval, who, places []string) tea.Cmd {
	like := "exactly this"
	if len(places) > 0 {
		like = "this with any " + strings.Join(places, ", ")
	}
	names := core.Map(who, func(one string) string { return like + ", by " + forWhom[one] })
	if a.Risk != judge.High { // the engine accepts nothing wider
		names = append(names, "let arguments be any …")
	}
	return an.menu("Always approve", names, func(i int) tea.Cmd {
		if i == len(who) {
			return an.prompt("Any: argv.2, argv.2+, path, *, files", func(text string) tea.Cmd {
				return an.alwaysLike(it, a, who, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }))
			})
		}
		lasts := core.Map(terms, func(t judge.Always) string {
			return fmt.Sprintf("for %s, at most %d times", face.Span(t.Expires), t.MaxUses)
		})
		return an.menu("Always "+names[i], lasts, func(n int) tea.Cmd {
			want := terms[n]
			want.For, want.Any = who[i], places
			rule := a.Offer(want)
			more := []string{"--always", want.For, "--expires", want.Expires.String(), "--max-uses", strconv.Itoa(want.MaxUses), "--rule-digest", rule.Digest}
			for _, place := range places {
				more = append(more, "--any", place)
			}
			return an.withReason(a, func(reason []string, _ bool) tea.Cmd {
				return an.approve(it, a, append(more, reason...), rule.Line)
			})
		})
	})
}

// objectWidth is what a list of answers shows of each action, in bytes.
const objectWidth = 56

// markedApprovals are those that a key answers together: none unless their list has
// the focus.
func (an *answers) markedApprovals() []pane.Item {
	if p := an.focused(); p != nil && p.Name() == gate.ApprovalsName {
		return p.Marks()
	}
	return nil
}

// answerMarked approves or denies what is marked, with one reason. Each is listed with
// its own digest and object, as it was when it was marked, and decided on its own.
// What is at high risk is never approved so.
func (an *answers) answerMarked(how string, marked []pane.Item) tea.Cmd {
	if how != "approve" && how != "deny" {
		return an.say(true, "", "approvals that are marked are approved or denied; take the marks away for all else")
	}
	open := map[string]*judge.Approval{}
	for _, a := range an.env().Snap.Approvals {
		open[a.ApprovalID] = a
	}
	var list []string
	var items []pane.Item
	for _, it := range marked {
		a := open[it.ID]
		switch {
		case a == nil:
			return an.say(true, "", it.ID+" is answered already: take its mark away")
		case how == "approve" && pane.HighRisk(a.Risk):
			return an.say(true, "", it.ID+" is at "+string(a.Risk)+" risk, which is approved one at a time: take its mark away")
		case how == "approve" && a.Gate == judge.GateQuestion:
			return an.say(true, "", it.ID+" is a question, which is answered by itself: take its mark away")
		case a.Digest != it.Digest:
			return an.say(true, "", it.ID+" has changed since it was marked: read it again")
		}
		items = append(items, it)
		list = append(list, fmt.Sprintf("%s %.12s %s %s", it.ID, a.Digest, a.Risk, a.Agent.Name), "  "+core.ClipTo(pane.Headline(a), objectWidth))
	}
	if most := max(3, (an.h-12)/2); len(items) > most {
		return an.say(true, "", fmt.Sprintf("%d are marked; %d fit on this screen, and are answered together", len(items), most))
	}
	title := fmt.Sprintf("Reason to %s %d", how, len(items))
	return an.prompt(title, func(reason string) tea.Cmd {
		if reason = strings.TrimSpace(reason); reason == "" {
			return an.say(true, "", "many are answered with a reason only")
		}
		j := job{targets: items, confirm: command.ConfirmType, about: fmt.Sprintf("%s %d in tenant %s, each for itself:\n%s\nreason: %s", how, len(items), an.tenant, strings.Join(list, "\n"), reason)}
		for _, it := range items {
			it.Shown = an.now.UTC().Format(time.RFC3339Nano) // here, in the list
			j.lines = append(j.lines, append(an.answerLine(how, it), "--reason", reason))
		}
		return an.submit(j)
	})
}

// answerQuestion opens what a question is answered with: a form of its schema, or a
// menu of its options. What comes of either is shown once more before it is sent.
func (an *answers) answerQuestion(it pane.Item, a *judge.Approval) tea.Cmd {
	q, err := a.Question()
	if err != nil {
		return an.say(true, "", err.Error())
	}
	return an.withReason(a, func(reason []string, sure bool) tea.Cmd {
		switch {
		case len(q.Options) > 0:
			names := core.Map(q.Options, pane.OptionText)
			return an.menu("Answer with", names, func(i int) tea.Cmd {
				content := core.MustEncode(map[string]string{"option": q.Options[i].ID})
				return an.approve(it, a, append([]string{"--content", string(content)}, reason...), "")
			})
		case !q.Needs():
			return an.approveNow(it, a, reason, sure)
		}
		return an.fill(pane.Fill{
			Title: pane.Headline(a), Fields: overlay.SchemaFields(q.Schema), Check: q.Check,
			Line: func(object core.Raw) []string {
				return append(append(an.answerLine("approve", it), "--content", string(object)), reason...)
			},
		}, true)
	})
}
