package review

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/tree"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// mostSaid is how many rows below a diff say what stands at the cursor.
const mostSaid = 5

// notes are what is known of the work that a diff shows, beside its text.
type notes struct {
	tree.Review
	asked []tree.Input
}

// work is the agent whose tree is shown, and the one that it is compared with, if any.
func (p *Diff) work() (agent, against string) {
	agent, is := strings.CutPrefix(p.Item().ID, "tree:")
	if !is || p.of == nil {
		return "", ""
	}
	agent, against, _ = strings.Cut(agent, " ")
	return agent, against
}

// ask reads what people say of the work: that changes whenever one of them writes.
func (p *Diff) ask(env pane.Env) tea.Cmd {
	agent, _ := p.work()
	if agent == "" {
		return nil
	}
	of, tenant := p.of, env.Tenant
	return p.noting.Read(p.Item().ID, func(ctx context.Context) (notes, error) {
		asked, err := of.Asked(ctx, tenant, agent)
		return notes{of.Review(tenant, agent), asked}, err
	})
}

// noted takes in what they said.
func (p *Diff) noted(env pane.Env, a pane.Answer[notes]) tea.Cmd {
	if a.Err == nil {
		p.notes = &a.Got
		p.settle(env)
	}
	if a.Again {
		return p.ask(env)
	}
	return nil
}

// settle shows what is known at its lines and files.
func (p *Diff) settle(env pane.Env) {
	p.me = env.Caller.Name
	if p.notes == nil {
		return
	}
	p.view.Notes = map[string][]diff.Remark{}
	_, against := p.work()
	for _, m := range p.notes.Remarks {
		if m.File != "" && (against == "" || !m.Old) {
			text := m.By + ": " + strings.Join(strings.Fields(m.Text), " ")
			p.view.Notes[m.File] = append(p.view.Notes[m.File], diff.Remark{From: m.Line, To: m.Last, Old: m.Old, Text: text})
		}
	}
	p.view.Tag = nil
	if p.got == nil || against != "" {
		return
	}
	seen := p.notes.Seen(p.got.Parts)
	p.view.Tag = func(path string, hunk int) string { return p.tag(seen, path, hunk) }
	mine := map[string]bool{}
	for path, by := range seen {
		mine[path] = slices.Contains(by, p.me)
	}
	known := p.mine
	p.mine = mine
	p.view.See(func(path string) bool { return mine[path] && !known[path] }) // what was taken back meanwhile stays so
	p.fit()
}

// tag is what is told of a file, 0, or of a hunk.
func (p *Diff) tag(seen map[string][]string, path string, hunk int) string {
	var parts []string
	for _, in := range p.notes.asked {
		if in.State != p.got.State {
			continue
		}
		all := len(in.Only) == 0 && hunk == 0
		for _, o := range in.Only {
			if o.Path == path && (len(o.Hunks) == 0 && hunk == 0 || slices.Contains(o.Hunks, hunk)) {
				all = true
			}
		}
		if all {
			parts = append(parts, "accepted, to be approved")
			break
		}
	}
	if by := slices.DeleteFunc(slices.Clone(seen[path]), func(by string) bool { return by == p.me }); hunk == 0 && len(by) > 0 {
		parts = append(parts, "viewed by "+strings.Join(by, ", "))
	}
	return strings.Join(parts, "  ")
}

// status is the line above the work of an agent: its checks, what was said and asked.
func (p *Diff) status(env *pane.Env) (text string, role screen.Role) {
	agent, against := p.work()
	if agent == "" || p.notes == nil || p.got == nil {
		return "", screen.Dim
	}
	if against != "" {
		return "green is " + agent + "'s, red is " + against + "'s", screen.Text
	}
	text, role = "no checks yet", screen.Dim
	if c := p.notes.Checked; c != nil {
		text, role = checked(env, c, p.got.State)
		text = "checks " + text
		if n := len(c.Runs); n > 0 {
			text += ": " + line(c.Runs[n-1].Command)
		}
		text += ", " + pane.Age(env.Now, c.At) + " ago"
	}
	if n := len(p.notes.Open()); n > 0 {
		text += fmt.Sprintf("   to send: %d", n)
	}
	if n := len(p.notes.asked); n > 0 {
		text += fmt.Sprintf("   %d to be approved", n)
	}
	return text, role
}

// here is what was said of what is under the cursor, a line for each.
func (p *Diff) here() (lines []string) {
	if p.notes == nil {
		return nil
	}
	path, at := p.view.Here()
	add := func(m *tree.Remark) {
		state := "not sent"
		if m.Sent != "" {
			state = "sent"
		}
		lines = append(lines, fmt.Sprintf("%d. %s, %s: %s", m.ID, m.By, state, term.Clean(strings.Join(strings.Fields(m.Text), " "))))
	}
	_, against := p.work()
	n := 0
	for i := range p.notes.Remarks {
		m := &p.notes.Remarks[i]
		if m.File != path || against != "" && m.Old {
			continue
		}
		if slices.Contains(at, n) {
			add(m)
		}
		n++
	}
	return lines
}

// fit gives the diff the room that is left.
func (p *Diff) fit() {
	top, below := 0, 0
	if p.notes != nil && p.got != nil {
		top, below = 1, min(len(p.here()), mostSaid)
	}
	p.view.Resize(p.w, max(p.h-top-below, 1))
}

// drawNoted draws the work of an agent with what people say of it.
func (p *Diff) drawNoted(c *screen.Canvas, env *pane.Env, focused bool) {
	text, role := p.status(env)
	if text == "" || c.H() < 4 {
		p.view.Draw(c, focused)
		return
	}
	c.Text(0, 0, role, text)
	said := p.here()
	n := min(len(said), mostSaid, c.H()-3)
	p.view.Draw(c.Sub(screen.Rect{Y: 1, W: c.W(), H: c.H() - 1 - n}), focused)
	for i := range n {
		line := said[i]
		if i == n-1 && len(said) > n {
			line = fmt.Sprintf("%s … and %d more: t", line, len(said)-n)
		}
		c.Text(0, c.H()-n+i, screen.Warn, line)
	}
}

// Run implements pane.Runner: that a file was viewed is kept by a command.
func (p *Diff) Run(env pane.Env, action string) (words []string, ok bool) {
	agent, against := p.work()
	path, _ := p.view.Piece()
	if action != "viewed" || agent == "" || against != "" || path == "" || p.notes == nil || env.ReadOnly || p.view.Listed() {
		return nil, false
	}
	verb := "viewed"
	if p.view.Viewed[path] {
		verb = "unviewed"
	}
	return []string{"review", verb, "--", agent, path}, true
}

// piece names the hunk or the file under the cursor for review accept.
func (p *Diff) piece() (file, piece string) {
	file, hunk := p.view.Piece()
	if hunk == 0 {
		return file, file
	}
	return file, file + ":" + strconv.Itoa(hunk)
}
