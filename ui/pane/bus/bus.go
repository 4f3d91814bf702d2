// Package bus has the panes of messages between agents: the newest as they
// come, one with its conversation, and who reads what.
package bus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/grid"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const listName = "bus"

// Bus is what the panes read of the message bus; *bus.Bus has it.
type Bus interface {
	Get(ctx context.Context, tenant, id string) (bus.Message, error)
	List(ctx context.Context, tenant string, q bus.Query) (core.Page[bus.Message], error)
	// Recent are the newest n messages that a pattern selects ("" every one),
	// oldest first, and the seq from which Since goes on.
	Recent(ctx context.Context, tenant, pattern string, n int) ([]bus.Message, uint64, error)
	Since(ctx context.Context, tenant, pattern string, seq uint64, n int) ([]bus.Message, uint64, error)
	Subscriptions(ctx context.Context, tenant string) ([]bus.SubscriptionInfo, error)
	Mailboxes(ctx context.Context, tenant string) ([]bus.Mailbox, error)
}

// List shows the tail of the messages that a pattern selects.
type List struct {
	*pane.Table[line]
	tail tail
	text string // the filter, the pattern with it
}

// line is a message with its place in its conversation.
type line struct {
	bus.Message
	place place
}

// NewList makes the pane of messages: the newest as they come, conversations
// together, requests that nobody answers flagged with their age.
func NewList(of Bus) *List {
	p := &List{tail: tail{bus: of, reader: pane.NewReader[batch](listName)}}
	p.Table = pane.NewTable(pane.Spec[line]{
		Name: listName, Title: "bus", Empty: "no messages yet: press + to publish one", NewestFirst: true,
		Cols: []grid.Column{
			{Title: "TIME", Min: 8, Priority: 2},
			{Title: "TO", Min: 20, Weight: 2, Key: true},
			{Title: "FROM", Min: 10, Weight: 1, Priority: 3, Middle: true},
			{Title: "TYPE", Min: 8, Priority: 4},
			{Title: "STATE", Min: 15},
			{Title: "PAYLOAD", Min: 10, Weight: 4, Priority: 1},
		},
		Row: row, Item: func(l *line) pane.Item { return item(&l.Message) },
	})
	return p
}

// item is a message as a thing under the cursor.
func item(m *bus.Message) pane.Item {
	return pane.Item{Kind: "bus-message", ID: m.MessageID, Task: m.TaskID, Trace: m.TraceID}
}

// Refresh reads what is new.
func (p *List) Refresh(env pane.Env) tea.Cmd { return p.tail.refresh(env) }

// Update takes what was read. A cursor on the newest message stays on the
// newest; on any other it stays on its message.
func (p *List) Update(env pane.Env, body any) tea.Cmd {
	cmd, changed := p.tail.take(env, body)
	if !changed {
		return cmd
	}
	newest := p.Position() <= 0
	p.SetRows(env, threads(p.tail.messages))
	if newest {
		p.Table.Do(env, "top")
	}
	return cmd
}

// Filter narrows the messages in sight; topic:PATTERN chooses which are read.
func (p *List) Filter(env pane.Env, text string) (tea.Cmd, error) {
	pattern := ""
	var rest []string
	for _, word := range strings.Fields(text) {
		if value, ok := strings.CutPrefix(word, "topic:"); ok {
			pattern = value
		} else {
			rest = append(rest, word)
		}
	}
	if pattern != "" {
		if _, err := bus.ParsePattern(pattern); err != nil {
			return nil, err
		}
	}
	if _, err := p.Table.Filter(env, strings.Join(rest, " ")); err != nil {
		return nil, err
	}
	p.text = text
	if pattern == p.tail.pattern {
		return nil, nil
	}
	p.tail.bind(pattern)
	p.SetRows(env, nil)
	return p.tail.refresh(env), nil
}

func (p *List) FilterText() string { return p.text }

func (p *List) Reset() {
	p.Table.Reset()
	p.tail.bind(p.tail.pattern)
}

func (p *List) Title(env pane.Env) string {
	title := p.Table.Title(env)
	if all := env.Snap.Bus.Messages; p.tail.pattern == "" && all > int64(len(p.tail.messages)) && len(p.tail.messages) > 0 {
		title += fmt.Sprintf("  newest of %d", all)
	}
	if p.tail.pattern != "" {
		title += "  topic:" + p.tail.pattern
	}
	if p.tail.err != nil {
		title += "  " + p.tail.err.Error()
	}
	return title
}

// state is what became of a message; a request without an answer says for how
// long.
func state(env *pane.Env, m *bus.Message) pane.State {
	switch {
	case m.Unanswered:
		return pane.State{State: screen.Waiting, Word: "no answer " + pane.Age(env.Now, m.Timestamp)}
	case m.ResponseID != "":
		return pane.State{State: screen.Succeeded, Word: "answered"}
	}
	word := string(m.Status)
	if m.Dead != "" && m.ResentAs == "" {
		word = m.Dead
	}
	if m.Status == bus.Open {
		return pane.State{State: screen.Queued, Word: "unread"}
	}
	return pane.State{State: screen.StateOf(word), Word: word}
}

// shown is how much of a payload stands in a row.
const shown = 300

func row(env *pane.Env, l *line, set func(int, string, screen.Role)) {
	m := &l.Message
	set(0, pane.Clock(env.Now, m.Timestamp), screen.Dim)
	set(1, l.place.lead(env.Glyphs)+face.Address(m.Topic, m.RecipientID), screen.Accent)
	set(2, m.SenderID, screen.Text)
	role := screen.Text
	if m.MessageType == bus.Error {
		role = screen.Bad
	}
	set(3, string(m.MessageType), role)
	st := state(env, m)
	set(4, st.Label(env.Glyphs), st.Role())
	set(5, string(m.Payload[:min(len(m.Payload), shown)]), screen.Dim)
}

// NewSubscriptions makes the pane of who reads what of the bus and how far
// behind, the furthest first, and of mailboxes with unread messages, as old as the
// oldest of them.
func NewSubscriptions(of Bus) *pane.Table[bus.SubscriptionInfo] {
	return pane.NewTable(pane.Spec[bus.SubscriptionInfo]{
		Name: "subscriptions", Title: "subscriptions", Empty: "nobody reads the bus",
		Face: face.For[bus.SubscriptionInfo](),
		Cells: map[string]pane.Cell[bus.SubscriptionInfo]{
			"READER": func(env *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				if s.Open {
					return pane.State{State: screen.Working, Word: "reads"}.Cell(env)
				}
				return pane.State{State: screen.Offline, Word: "none"}.Cell(env)
			},
			"LAG": func(_ *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				if s.Lag > 0 {
					return strconv.Itoa(s.Lag), screen.Warn
				}
				return "0", screen.Text
			},
			"MISSED": func(_ *pane.Env, s *bus.SubscriptionInfo) (string, screen.Role) {
				return pane.Some(s.Missed), screen.Bad
			},
		},
		ID: func(s *bus.SubscriptionInfo) string {
			return s.Name + " " + s.Pattern + " " + s.RecipientID + " " + s.By
		},
		Item: func(s *bus.SubscriptionInfo) pane.Item { return pane.Item{Kind: "subscription", ID: s.Name} },
		Load: func(ctx context.Context, tenant string) ([]bus.SubscriptionInfo, error) {
			return readSubscriptions(ctx, of, tenant)
		},
	})
}

func readSubscriptions(ctx context.Context, of Bus, tenant string) ([]bus.SubscriptionInfo, error) {
	all, err := of.Subscriptions(ctx, tenant)
	if err != nil {
		return nil, err
	}
	boxes, err := of.Mailboxes(ctx, tenant)
	for _, b := range boxes {
		if i := slices.IndexFunc(all, func(s bus.SubscriptionInfo) bool { return s.RecipientID == b.RecipientID }); i >= 0 {
			all[i].CreatedAt = b.Oldest
		} else {
			all = append(all, bus.SubscriptionInfo{RecipientID: b.RecipientID, Lag: b.Open, CreatedAt: b.Oldest})
		}
	}
	core.Sort(all, func(a, b bus.SubscriptionInfo) int { return b.Lag - a.Lag })
	return all, err
}
