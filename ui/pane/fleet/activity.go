package fleet

import (
	"fmt"
	"strconv"

	"swarmdeck/engine/fleet"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// diffItem is the kind of a line that opens or folds a diff. It is no thing
// of the engine's: only this pane knows it.
const diffItem = "agent-diff"

// callsShown is how many of its newest calls the sheet lists.
const callsShown = 20

// plan writes out the agent's plan as it is now.
func plan(env *pane.Env, act *fleet.Activity, out *pane.Paras) {
	if len(act.Plan) == 0 {
		return
	}
	done, rows := 0, make([]pane.Row, len(act.Plan))
	for i, s := range act.Plan {
		st := stepState(s.Status)
		if st.State == screen.Succeeded {
			done++
		}
		role := screen.Text
		if st.State != screen.Idle {
			role = st.Role()
		}
		rows[i] = pane.Row{Text: st.Glyph(env.Glyphs) + " " + s.Text, Role: role, Note: st.Word}
	}
	out.Head(fmt.Sprintf("plan (%d of %d done)", done, len(act.Plan)))
	out.Rows("", rows)
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
		what := c.Title
		if what == "" {
			what = c.Args
		}
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

// change is a diff, taken apart for the sheet.
type change struct {
	*fleet.Diff
	lines          []diff.Row
	added, removed int
}

func newChange(d *fleet.Diff) change {
	c := change{Diff: d}
	c.lines, c.added, c.removed = diff.Draw(d.Text)
	return c
}

// linesShown is how much of an open diff the sheet shows; the pager has it all.
const linesShown = 100

// diffs lists the changes of files, the newest first; enter opens one.
func (p *Agent) diffs(env *pane.Env, act *fleet.Activity, out *pane.Paras) {
	if act.Drew == 0 {
		return
	}
	out.Head(fmt.Sprintf("changed files (%d)", act.Drew))
	var rows []pane.Row
	for i := len(p.changes) - 1; i >= 0; i-- {
		rows = p.changes[i].rows(env, p.open[p.changes[i].Number], rows)
	}
	out.Rows("", rows)
	if more := act.Drew - len(act.Diffs); more > 0 {
		out.Add("", fmt.Sprintf("%d earlier ones are in the log", more), screen.Dim)
	}
}

// rows adds the line of a change, and its own lines when it is open.
func (c *change) rows(env *pane.Env, open bool, rows []pane.Row) []pane.Row {
	name, sign := c.Path, env.Glyphs.Closed
	if name == "" {
		name = "a file"
	}
	if open {
		sign = env.Glyphs.Open
	}
	it := pane.Item{Kind: diffItem, ID: strconv.Itoa(c.Number)}
	rows = append(rows, pane.Row{
		Text: string(sign) + " " + name, Role: screen.Accent, Item: it,
		Note: fmt.Sprintf("+%d -%d  %s", c.added, c.removed, pane.Age(env.Now, c.At)),
	})
	if !open {
		return rows
	}
	for _, l := range c.lines[:min(len(c.lines), linesShown)] {
		rows = append(rows, pane.Row{Lead: "  " + l.Lead, Text: l.Text, Role: l.Role, Item: it})
	}
	if more := len(c.lines) - linesShown; more > 0 {
		rows = append(rows, pane.Row{Lead: "  ", Text: fmt.Sprintf("%d more lines: the pager shows them", more), Role: screen.Dim, Item: it})
	}
	return rows
}

// diffAt is the diff that the cursor is on.
func (p *Agent) diffAt() (*change, bool) {
	it := p.Page.Item()
	n, err := strconv.Atoi(it.ID)
	if it.Kind != diffItem || err != nil {
		return nil, false
	}
	for i := range p.changes {
		if p.changes[i].Number == n {
			return &p.changes[i], true
		}
	}
	return nil, false
}

// fold folds or opens what is under the cursor; all of it with "fold-all".
func (p *Agent) fold(env pane.Env, action string) bool {
	if action == "fold-all" {
		if len(p.did.Diffs) == 0 {
			return false
		}
		opened := len(p.open) > 0
		clear(p.open)
		for i := range p.did.Diffs {
			if !opened {
				p.open[p.did.Diffs[i].Number] = true
			}
		}
		p.lay(env)
		return true
	}
	d, ok := p.diffAt()
	if !ok {
		return false
	}
	if p.open[d.Number] {
		delete(p.open, d.Number)
	} else {
		p.open[d.Number] = true
	}
	p.lay(env)
	return true
}

// Paper implements pane.Papered: the diff under the cursor, else the agent's
// directory.
func (p *Agent) Paper(pane.Env) (pane.Paper, bool) {
	if d, ok := p.diffAt(); ok {
		return pane.Paper{Text: d.Text + "\n"}, true
	}
	if p.agent == nil {
		return pane.Paper{}, false
	}
	dir := p.agent.Dir
	if dir == "" {
		dir = "."
	}
	return pane.Paper{Dir: dir}, true
}
