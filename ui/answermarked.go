package ui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/gate"
)

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
