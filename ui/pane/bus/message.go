package bus

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// talkShown is how many messages of its conversation the sheet lists.
const talkShown = 20

// talked is a message with its conversation.
type talked struct {
	bus.Message
	talk []bus.Message // the others, oldest first
}

// NewMessage makes the sheet of one message of the bus: its envelope, the
// conversation around it, what became of it, and the payload.
func NewMessage(of Bus) *pane.Detail[talked] {
	return pane.NewDetail(pane.DetailSpec[talked]{
		Name: "bus-message", Text: messageText, Live: true,
		Fetch:   func(ctx context.Context, tenant, id string) (talked, error) { return fetchMessage(ctx, of, tenant, id) },
		Item:    func(g *talked) pane.Item { return item(&g.Message) },
		Settled: func(g *talked) bool { return !g.Unanswered && g.Status != bus.Open },
		Title:   func(g *talked) string { return string(g.MessageType) },
		State:   func(env *pane.Env, g *talked) pane.State { return state(env, &g.Message) },
	})
}

func fetchMessage(ctx context.Context, of Bus, tenant, id string) (g talked, err error) {
	if g.Message, err = of.Get(ctx, tenant, id); err != nil {
		return g, err
	}
	switch m := &g.Message; {
	case m.CorrelationID == "" || m.Unanswered:
	case m.ResponseID != "": // no need to look for it
		answer, err := of.Get(ctx, tenant, m.ResponseID)
		if err != nil {
			return g, err
		}
		g.talk = []bus.Message{answer}
	case m.Status != bus.Open: // read once, then
		const longest = bus.MaxTTL * time.Second
		talk, err := of.List(ctx, tenant, bus.Query{
			Correlation: m.CorrelationID,
			Filter:      core.Filter{Since: m.Timestamp.Add(-longest), Until: m.Timestamp.Add(longest), Page: 1, Size: talkShown},
		})
		if err != nil {
			return g, err
		}
		for i := len(talk.Items) - 1; i >= 0; i-- {
			if talk.Items[i].MessageID != m.MessageID {
				g.talk = append(g.talk, talk.Items[i])
			}
		}
	}
	return g, nil
}

func messageText(env pane.Env, g *talked, out *pane.Paras) {
	m := &g.Message
	out.Fields(&env, m, "topic,exact,accent to:recipient_id,exact,accent from:sender_id,exact,accent type:message_type sent:timestamp")
	if m.TTL > 0 {
		lives := "kept for delivery " + face.Span(time.Duration(m.TTL)*time.Second)
		if m.Unanswered || m.Status == bus.Open {
			lives = "expires in " + pane.Left(env.Now, m.ExpiresAt())
		}
		out.Add("priority", strconv.Itoa(m.Priority)+", "+lives, screen.Text)
	}
	out.Document("payload", m.Payload)
	if len(m.Deliveries) > 0 {
		out.Head("deliveries")
		for _, d := range m.Deliveries {
			st := screen.StateOf(string(d.Status))
			line := d.RecipientID + d.Subscription + " " + string(d.Status)
			if !d.At.IsZero() {
				line += " " + pane.Age(env.Now, d.At) + " ago"
			}
			if d.Reason != "" {
				line += ": " + d.Reason
			}
			out.Add("", st.Glyph(env.Glyphs)+" "+line, st.Role())
		}
	}
	if len(g.talk) > 0 {
		out.Head("conversation")
		for i := range g.talk {
			t := &g.talk[i]
			st := state(&env, t)
			line := fmt.Sprintf("%s %s from %s: %s", st.Glyph(env.Glyphs), t.MessageType, t.SenderID, t.Payload[:min(len(t.Payload), 200)])
			out.Link(pane.Age(env.Now, t.Timestamp), line, st.Role(), item(t))
		}
	}
	out.Head("record")
	out.Fields(&env, m, "message:message_id,accent correlation:correlation_id,dim repeats:resend_of,opens=bus-message repeated:resent_as,opens=bus-message")
	out.Fields(&env, m, "task:task_id,opens trace:trace_id,dim seq,dim")
}

// place is where a message stands in its conversation.
type place uint8

const (
	alone   place = iota // or the first of a conversation
	between              // more of the conversation follows
	last
)

// lead are the lines before what follows the first of a conversation.
func (p place) lead(g *screen.Glyphs) string {
	switch p {
	case between:
		return string(g.Branch) + string(g.Horizontal) + " "
	case last:
		return string(g.LastBranch) + string(g.Horizontal) + " "
	}
	return ""
}

// threads lays messages, which come oldest first, out newest first, and those
// of one conversation together in their order where the newest of them stands.
func threads(messages []bus.Message) []line {
	talks := map[string][]int{}
	for i := range messages {
		if id := messages[i].CorrelationID; id != "" {
			talks[id] = append(talks[id], i)
		}
	}
	lines := make([]line, 0, len(messages))
	for _, m := range slices.Backward(messages) {
		id := m.CorrelationID
		talk := talks[id]
		if id == "" || len(talk) == 1 {
			lines = append(lines, line{m, alone})
			continue
		}
		for n, i := range talk {
			at := between
			switch n {
			case 0:
				at = alone
			case len(talk) - 1:
				at = last
			}
			lines = append(lines, line{messages[i], at})
		}
		talks[id] = nil
	}
	return lines
}
