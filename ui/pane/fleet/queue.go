package fleet

import (
	"fmt"
	"strings"

	"swarmdeck/engine/fleet"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// queueItem is the kind of a line that shows a message that waits. Only this pane
// knows it.
const queueItem = "agent-message"

// queue lists what waits for the agent, the next first.
func (p *Agent) queue(env *pane.Env, of *fleet.Agent, out *pane.Paras) {
	all := p.agents.Queued(env.Tenant, of.Name)
	if len(all) == 0 {
		return
	}
	out.Head(fmt.Sprintf("messages that wait (%d)", len(all)))
	rows := make([]pane.Row, len(all))
	for i, m := range all {
		when, role := "next task", screen.Text
		switch {
		case m.Held != "":
			when, role = "could not be given: "+m.Held, screen.Bad
		case m.Told != "":
			when, role = "told in its task", screen.Good
		case m.Steers && of.TaskID != "":
			when, role = "next prompt of its task", screen.Accent
		case i > 0:
			when = "after"
		}
		rows[i] = pane.Row{
			Text: fmt.Sprintf("%d %s", m.Place, brief(m.Text)), Role: role, Note: when + ", " + pane.Age(env.Now, m.CreatedAt) + ", " + m.By,
			Item: pane.Item{Kind: queueItem, ID: m.MessageID, Task: m.Told},
		}
	}
	out.Rows("", rows)
}

// brief is the first line of a text, and how many there are.
func brief(text string) string {
	text = strings.TrimSpace(text)
	first, _, more := strings.Cut(text, "\n")
	if more {
		return fmt.Sprintf("%s (%d lines)", strings.TrimSpace(first), strings.Count(text, "\n")+1)
	}
	return first
}

// waiting is the message that the cursor is on, "" for none.
func (p *Agent) waiting() string {
	if it := p.Page.Item(); it.Kind == queueItem {
		return it.ID
	}
	return ""
}

// Open implements pane.Opener: a message that was told opens the task that it was told in.
func (p *Agent) Open(env pane.Env) pane.Item {
	it := p.Detail.Open(env)
	if it.Kind != queueItem {
		return it
	}
	if it.Task == "" {
		return pane.Item{}
	}
	return pane.Item{Kind: "task", ID: it.Task}
}
