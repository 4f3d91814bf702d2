package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/term"
)

// attention is what waits for the operator, and what of it was told.
type attention struct {
	*dialog
	blurred bool            // the terminal is out of focus
	heeded  map[string]bool // needs that were told of, or seen
	looked  map[string]bool // failures that were looked at
	rang    time.Time       // the last notice
	walk    walk
}

// walk is a way through all that needs somebody.
type walk struct {
	seen map[string]bool // needs that it came to; nil is no walk
	from placement       // where it began, and the row under the cursor there
	row  string
	list string // that it went to last
}

// need is one thing that waits for the operator.
type need struct {
	item pane.Item
	text string // in one line; from outside, so it is cleaned where it is used
	once bool   // having looked at it is all that can be done
}

// key tells needs apart: an agent that asks anew is news.
func (n *need) key() string {
	if n.item.Kind == "approval" {
		return n.item.ID
	}
	return n.item.Kind + " " + n.item.ID + " " + n.text
}

// queue is what waits for the operator, the most urgent first: approvals,
// agents that ask for a person, that can't work, that are stuck, subagents that failed
// and were not looked at.
func (q *attention) queue() []need {
	var out []need
	for _, a := range q.snap.Approvals {
		out = append(out, need{item: gate.ApprovalItem(a), text: "asks: " + pane.Headline(a)})
	}
	agent := func(name, text string) {
		out = append(out, need{item: pane.Item{Kind: "agent", ID: name, Agent: name}, text: text})
	}
	for _, a := range q.snap.Agents {
		if a.Attention != "" && a.Waiting == "" {
			agent(a.Name, a.Name+" asks: "+a.Attention)
		}
	}
	for _, a := range q.snap.Agents {
		if a.Trouble != nil && a.State() == "waiting for you" {
			agent(a.Name, a.Name+" can't work: "+a.Trouble.Reason)
		}
	}
	for _, a := range q.snap.Agents {
		if a.State() == "stuck" {
			agent(a.Name, a.Name+" is stuck: "+a.Stuck.Text)
		}
	}
	for _, a := range q.fleet.Failed(q.env()) {
		n := need{item: pane.Item{Kind: "subagent", ID: a.AgentID, Task: a.TaskID}, text: a.Label() + " failed: " + a.Error, once: true}
		if !q.looked[n.key()] {
			out = append(out, n)
		}
	}
	return out
}

// nextNeed goes to the next thing that waits for the operator, the most urgent first,
// and after the last one back to where the walk began. Who has gone elsewhere meanwhile
// begins another.
func (q *attention) nextNeed() tea.Cmd {
	w, queue := &q.walk, q.queue()
	if w.seen != nil && w.list != q.place.base {
		*w = walk{}
	}
	if w.seen == nil && len(queue) > 0 {
		*w = walk{seen: map[string]bool{}, from: q.place, row: q.panes[q.place.base].Selected(q.env()).ID}
		w.from.open = slices.Clone(w.from.open)
	}
	at := slices.IndexFunc(queue, func(n need) bool { return !w.seen[n.key()] })
	if at < 0 {
		return q.endWalk(len(queue))
	}
	next := queue[at]
	w.seen[next.key()] = true
	if next.once {
		q.lookedAt(next, queue)
	}
	if next.item.Kind != "approval" {
		w.list = fleet.Name
		q.goTo(fleet.Name)
		_, _ = q.fleet.Filter(q.env(), "")
		q.fleet.Select(next.item.ID)
		return nil
	}
	w.list = gate.ApprovalsName
	q.goTo(gate.ApprovalsName)
	q.list.Refresh(q.env())
	_, _ = q.list.Filter(q.env(), "")
	q.list.Select(next.item.ID)
	if q.w < wideW {
		return q.openItem(next.item)
	}
	return nil
}

// endWalk goes back to where a walk began; left is how much still needs somebody.
func (q *attention) endWalk(left int) tea.Cmd {
	text := "nothing needs you"
	if left > 0 {
		text = fmt.Sprintf("that was all that needs you: %d", left)
	}
	if from := q.walk.from; q.walk.seen != nil {
		q.place.base, q.place.lead, q.place.open, q.place.prev = from.base, from.lead, from.open, from.prev
		if p, ok := q.panes[from.base].(interface{ Select(id string) bool }); ok {
			p.Select(q.walk.row)
		}
		q.walk = walk{}
	}
	return q.say(false, "", text)
}

// lookedAt notes that something was looked at, and forgets what is over.
func (q *attention) lookedAt(n need, queue []need) {
	q.looked[n.key()] = true
	if len(q.looked) > 4*len(queue)+100 {
		q.looked = map[string]bool{n.key(): true}
	}
}

// Notice is how somebody who looks elsewhere is told that something waits.
type Notice string

// The ways. A terminal that does not know a sequence ignores it.
const (
	NoticeOff    Notice = "off"
	NoticeBell   Notice = "bell"   // the terminal's bell
	NoticeOSC9   Notice = "osc9"   // a desktop notification: iTerm2, WezTerm, kitty, Windows Terminal, Ghostty
	NoticeOSC777 Notice = "osc777" // the same: urxvt, foot, Ghostty, WezTerm
)

// alertGap is the least time between two notices.
const alertGap = 10 * time.Second

// noticeWidth is how much of what is needed a notice says, in cells.
const noticeWidth = 120

// alert tells of what is new in the queue when the terminal is out of focus.
// What comes too soon after another notice is told together with the next.
func (q *attention) alert() tea.Cmd {
	queue := q.queue()
	if !q.blurred {
		q.heed(queue)
		return nil
	}
	news := core.Where(queue, func(n need) bool { return !q.heeded[n.key()] })
	if len(news) == 0 || q.now.Sub(q.rang) < alertGap {
		return nil
	}
	q.rang = q.now
	q.heed(queue)
	text := news[0].text
	if len(news) > 1 {
		text = fmt.Sprintf("%d things need you: %s", len(news), text)
	}
	if seq := q.opt.Notice.sequence(text); seq != "" {
		return tea.Raw(seq)
	}
	return nil
}

// heed takes the queue as known.
func (q *attention) heed(queue []need) {
	q.heeded = make(map[string]bool, len(queue))
	for _, n := range queue {
		q.heeded[n.key()] = true
	}
}

// sequence is what to send to the terminal. The text says things from outside:
// it is one clean line without what would end the sequence or part its fields.
// It begins with a word of ours, since some terminals take OSC 9 with a number
// as a command.
func (n Notice) sequence(text string) string {
	text = strings.ReplaceAll(term.Cut(text, noticeWidth), ";", ",")
	switch n {
	case NoticeBell:
		return "\a"
	case NoticeOSC9:
		return "\x1b]9;swarmdeck: " + text + "\a"
	case NoticeOSC777:
		return "\x1b]777;notify;swarmdeck;" + text + "\a"
	}
	return ""
}
