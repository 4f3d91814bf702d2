package ui

import (
	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/overlay"
	"swarmdeck/ui/pane"
)

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
			names := make([]string, len(q.Options))
			for i, o := range q.Options {
				names[i] = pane.OptionText(o)
			}
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
