package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/task"
	"swarmdeck/engine/trend"
	"swarmdeck/engine/view"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// headCounts are the header's numbers, counted once a snapshot.
type headCounts struct {
	trend.Figures         // of agents
	running       int64   // tasks, those of agents too
	budget        float64 // the largest used share, 0 for none
}

func count(s *view.Snapshot) headCounts {
	var h headCounts
	one := func(word, task, agent string) { // work that the emergency stop froze is paused
		if word == "working" && task != "" && pane.Frozen(&s.EStop, task, agent) {
			word = "paused"
		}
		h.Count(word)
	}
	for _, a := range s.Agents {
		one(a.State(), a.TaskID, a.Name)
	}
	for _, a := range s.Subagents {
		one(a.Shown(), a.TaskID, a.AgentID)
	}
	for _, a := range s.CADAgents {
		one(a.Shown(), a.TaskID, a.AgentID)
	}
	h.running, h.Queued = s.Counts.ByStatus[task.Running], s.Counts.ByStatus[task.Queued]
	for _, b := range s.Budgets {
		h.budget = max(h.budget, pane.BudgetShare(b))
	}
	return h
}

// header says where I am and what is going on, in one line; a second one
// stands out while the emergency stop is on.
func (m *Model) header(c *screen.Canvas) {
	w := c.W()
	c.Fill(screen.Rect{X: 0, Y: 0, W: w, H: 1}, screen.Header, ' ')
	var where []string
	if len(m.snap.Tenants) > 1 || m.snap.Cluster.Many() {
		where = append(where, m.tenant)
	}
	if s := m.sessionText(); s != "" {
		where = append(where, s)
	}
	x := c.Text(1, 0, screen.Header, strings.Join(where, " "+string(c.Glyphs().Separator)+" "))
	right := w
	if n := len(m.queue()); n > 0 {
		text := fmt.Sprintf(" %s %d need you%s ", screen.Waiting.Glyph(c.Glyphs()), n, m.shortest())
		end := right
		right = m.headRight(c, right, screen.HeaderHot, text)
		m.pointer.keys = append(m.pointer.keys, spot{screen.Rect{X: right, W: end - right, H: 1}, m.keysOf("next-need")})
	}
	if len(m.snap.Troubles) > 0 {
		t := m.snap.Troubles[0]
		right = m.headRight(c, right, screen.Danger, " degraded: "+term.CutWith(t.Component+": "+t.Reason, w/4, c.Glyphs().Ellipsis)+" ")
	}
	if m.opt.ReadOnly {
		right = m.headRight(c, right, screen.HeaderHot, " read-only ")
	}
	if m.rec != nil {
		right = m.headRight(c, right, screen.HeaderHot, " rec ")
	}
	right = m.underWay(c, right)
	dot := " " + string(c.Glyphs().Bullet) + " "
	c.TextIn(x+2, 0, right-x-3, screen.Header, fitting(m.headParts(), dot, right-x-3))
	if m.snap.EStop.On {
		c.TextIn(0, 1, w, screen.Danger, m.stopText())
	}
}

// shortest is the time that is left for what must be answered first, "" where nothing
// has an end.
func (sh *shared) shortest() string {
	var first time.Time
	for _, a := range sh.snap.Approvals {
		if ends, _ := a.Ends(); !ends.IsZero() && (first.IsZero() || ends.Before(first)) {
			first = ends
		}
	}
	if first.IsZero() {
		return ""
	}
	return " " + string(sh.canvas.Glyphs().Bullet) + " " + pane.Left(sh.now, first)
}

// stopText is the line of the emergency stop: whether all work has really
// stopped and how it goes on, before who stopped it and why.
func (sh *shared) stopText() string {
	e := sh.snap.EStop
	text := fmt.Sprintf(" EMERGENCY STOP: all %d acknowledged", e.Frozen)
	if e.Frozen == 0 {
		text = " EMERGENCY STOP: all stopped"
	}
	waiting := ""
	if n := len(e.Waiting); n > 0 {
		text = fmt.Sprintf(" EMERGENCY STOP: %d NOT acknowledged", n)
		waiting = ": " + strings.Join(e.Waiting[:min(n, 3)], ", ")
		if n > 3 {
			waiting += fmt.Sprintf(" and %d more", n-3)
		}
	}
	return fmt.Sprintf("%s, E E thaws%s (%s, %s ago: %s)", text, waiting, e.By, pane.Age(sh.now, e.At), e.Reason)
}

// headPart is one number of the header.
type headPart struct {
	text string
	last int // what is dropped first where there is no room has the highest
}

func (m *Model) headParts() []headPart {
	var parts []headPart
	n := &m.counts
	// Those that need somebody are counted on the right, with all else that does.
	for _, p := range []struct {
		n    int
		text string
		last int
	}{{n.Working, "working", 2}, {n.Idle, "idle", 6}, {n.Paused, "paused", 4}, {n.Failing, "failed", 0}, {n.Offline, "offline", 5}} {
		if p.n > 0 {
			parts = append(parts, headPart{fmt.Sprintf("%d %s", p.n, p.text), p.last})
		}
	}
	if len(m.snap.Agents)+len(m.snap.Subagents)+len(m.snap.CADAgents) == 0 {
		parts = append(parts, headPart{"no agents", 5})
	}
	if n.running > 0 {
		parts = append(parts, headPart{fmt.Sprintf("run %d", n.running), 0})
	}
	parts = append(parts, headPart{fmt.Sprintf("queue %d", n.Queued), 0})
	if b := m.snap.Bus; b.Unanswered > 0 {
		parts = append(parts, headPart{fmt.Sprintf("%d unanswered", b.Unanswered), 2})
	}
	if b := m.snap.Bus; b.Dead > 0 {
		text := "1 dead msg"
		if b.Dead > 1 {
			text = fmt.Sprintf("%d dead msgs", b.Dead)
		}
		parts = append(parts, headPart{text, 1})
	}
	if text := m.company(); text != "" {
		parts = append(parts, headPart{text, 3})
	}
	if n.budget > 0 {
		parts = append(parts, headPart{fmt.Sprintf("budget %.0f%%", 100*n.budget), 3})
	}
	return parts
}

// fitting joins the parts that fit into w cells, in their order: what is
// dropped first where there is no room goes one by one, the right one first.
func fitting(parts []headPart, sep string, w int) string {
	for {
		texts, drop := make([]string, len(parts)), 0
		for i, p := range parts {
			texts[i] = p.text
			if p.last >= parts[drop].last {
				drop = i
			}
		}
		text := strings.Join(texts, sep)
		if len(parts) == 0 || parts[drop].last == 0 || term.Width(text) <= w {
			return text
		}
		parts = slices.Delete(parts, drop, drop+1)
	}
}

func (sh *shared) headRight(c *screen.Canvas, right int, role screen.Role, text string) int {
	n := len([]rune(text))
	c.Text(right-n, 0, role, text)
	return right - n
}

// sessionText is the session that is live, or how many are.
func (sh *shared) sessionText() string {
	switch n := len(sh.snap.Sessions); n {
	case 0:
		return ""
	case 1:
		s := sh.snap.Sessions[0]
		return cmp.Or(s.Name, s.SessionID) + " " + pane.SessionState(s).Word
	default:
		return fmt.Sprintf("%d sessions", n)
	}
}
