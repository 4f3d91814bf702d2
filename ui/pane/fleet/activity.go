package fleet

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/fleet"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// callsShown is how many of its newest calls the sheet lists.
const callsShown = 20

// planName is the kind of the line that folds the plan.
const planName = "plan"

// plan writes out the agent's plan as it is now: folded it is the step that it is at.
func (p *Agent) plan(env *pane.Env, act *fleet.Activity, out *pane.Paras) {
	if len(act.Plan) == 0 {
		return
	}
	done, next, rows := 0, "", make([]pane.Row, len(act.Plan))
	for i, s := range act.Plan {
		st := stepState(s.Status)
		switch {
		case st.State == screen.Succeeded:
			done++
		case next == "":
			next = s.Text
		}
		if st.State == screen.Working {
			next = s.Text
		}
		role := screen.Text
		if st.State != screen.Idle {
			role = st.Role()
		}
		rows[i] = pane.Row{Text: st.Glyph(env.Glyphs) + " " + s.Text, Role: role, Note: st.Word}
	}
	out.Head(fmt.Sprintf("plan (%d of %d done)", done, len(act.Plan)))
	head := pane.Row{Text: string(env.Glyphs.Open) + " all steps", Role: screen.Dim, Item: pane.Item{Kind: planName, ID: p.Item().ID}}
	if p.planOpen {
		out.Rows("", append([]pane.Row{head}, rows...))
		return
	}
	if head.Text, head.Role = string(env.Glyphs.Closed)+" "+next, screen.Busy; next == "" {
		head.Text, head.Role = string(env.Glyphs.Closed)+" all done", screen.Good
	}
	head.Note = fmt.Sprintf("%d steps", len(act.Plan))
	out.Rows("", []pane.Row{head})
}

// stepState is how far a step is; only the agent's own words are unknown.
func stepState(status string) pane.State {
	switch status {
	case "completed":
		return pane.State{State: screen.Succeeded, Word: "done"}
	case "in_progress":
		return pane.State{State: screen.Working, Word: "now"}
	case "pending", "":
		return pane.State{State: screen.Idle}
	}
	return pane.State{State: screen.StateOf(status), Word: status}
}

// callState is how far a tool call is.
func callState(c *fleet.Call) pane.State {
	switch c.State {
	case fleet.CallAsked:
		return pane.State{State: screen.Waiting, Word: "asks"}
	case fleet.CallRunning:
		return pane.State{State: screen.Working, Word: "running"}
	case fleet.CallDenied:
		return pane.State{State: screen.Failure, Word: "denied"}
	}
	return pane.State{State: screen.StateOf(string(c.State)), Word: string(c.State)}
}

// calls lists the newest tool calls, the newest first, each with who allowed
// it: the gate, or nobody but the agent.
func calls(env *pane.Env, act *fleet.Activity, out *pane.Paras) {
	if act.Made == 0 {
		return
	}
	out.Head(fmt.Sprintf("tool calls (%d)", act.Made))
	var rows []pane.Row
	for i := len(act.Calls) - 1; i >= 0 && len(rows) < callsShown; i-- {
		c := &act.Calls[i]
		st := callState(c)
		note := "agent-approved"
		if c.Asked {
			note = "asked"
		}
		if !c.Ended.IsZero() {
			note += " " + pane.Age(c.Ended, c.Began)
		} else {
			note += " " + pane.Age(env.Now, c.Began)
		}
		what := cmp.Or(c.Title, c.Args)
		if c.Error != "" {
			what += ": " + c.Error
		}
		rows = append(rows, pane.Row{Text: st.Label(env.Glyphs) + " " + c.Tool + "  " + what, Role: st.Role(), Note: note})
	}
	out.Rows("", rows)
	if more := act.Made - len(rows); more > 0 {
		out.Add("", fmt.Sprintf("%d earlier ones are in the log", more), screen.Dim)
	}
}

// diffs lists the changes of files, the newest first; enter opens one.
func (p *Agent) diffs(env *pane.Env, act *fleet.Activity, out *pane.Paras) {
	if act.Drew == 0 {
		return
	}
	out.Head(fmt.Sprintf("changed files (%d)", act.Drew))
	var rows []pane.Row
	for i := len(act.Diffs) - 1; i >= 0; i-- {
		d := &act.Diffs[i]
		rows = append(rows, pane.Row{
			Text: cmp.Or(d.Path, "a file"), Role: screen.Accent, Note: p.counts[i] + "  " + pane.Age(env.Now, d.At),
			Item: pane.Item{Kind: "diff", ID: "agent:" + p.Item().ID, Agent: p.Item().ID, Task: act.TaskID, Part: "#" + strconv.Itoa(i+1)},
		})
	}
	out.Rows("", rows)
	if more := act.Drew - len(act.Diffs); more > 0 {
		out.Add("", fmt.Sprintf("%d earlier ones are in the log", more), screen.Dim)
	}
}

// Paper implements pane.Papered: the diff under the cursor, else the agent's
// directory.
func (p *Agent) Paper(pane.Env) (pane.Paper, bool) {
	if n, err := strconv.Atoi(strings.TrimPrefix(p.Page.Item().Part, "#")); err == nil && p.Page.Item().Kind == "diff" && n <= len(p.did.Diffs) {
		return pane.Paper{Text: p.did.Diffs[n-1].Text + "\n"}, true
	}
	a, _ := p.Got()
	if a == nil {
		return pane.Paper{}, false
	}
	return pane.Paper{Dir: cmp.Or(a.Dir, ".")}, true
}

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
