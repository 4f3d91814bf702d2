package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// nextNeed goes to the next thing that waits for the operator, from the one
// that is shown on to the end, then round.
func (q *attention) nextNeed() tea.Cmd {
	queue := q.queue()
	if len(queue) == 0 {
		return q.say(false, "", "nothing needs you")
	}
	here := pane.Item{}
	if a := q.card.Approval(); a != nil && q.place.visible(gate.CardName) {
		here = gate.ApprovalItem(a)
	} else if p := q.focused(); p != nil {
		here = p.Selected(q.env())
	}
	at := slices.IndexFunc(queue, func(n need) bool { return n.item.Kind == here.Kind && n.item.ID == here.ID })
	next := queue[(at+1)%len(queue)]
	if next.once {
		q.lookedAt(next, queue)
	}
	if next.item.Kind == "approval" {
		q.goTo(gate.ApprovalsName)
		q.list.Refresh(q.env())
		_, _ = q.list.Filter(q.env(), "")
		q.list.Select(next.item.ID)
		if q.w < wideW {
			q.openItem(next.item)
		}
		return nil
	}
	q.goTo(fleet.Name)
	p := q.fleet
	_, _ = p.Filter(q.env(), "")
	p.Select(next.item.ID)
	return nil
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
	var news []need
	for _, n := range queue {
		if !q.heeded[n.key()] {
			news = append(news, n)
		}
	}
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
