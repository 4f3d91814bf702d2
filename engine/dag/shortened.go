package dag

import (
	"slices"

	"swarmdeck/engine/core"
)

// shorten leaves of a moment what a row of a timeline shows: its event has
// neither JSON nor nodes and edges, and of its texts there is the beginning.
func (m *Moment) shorten() {
	e := &m.Event
	m.brief = e.Brief()
	e.raw, e.Nodes, e.Edges = nil, nil, nil
	if m.Message != nil {
		m.Message = m.Message.shortened()
	}
	switch b := e.Body.(type) {
	case *ModelRequest:
		e.Body = &ModelRequest{Model: b.Model}
	case *ModelResponse:
		b.Error = b.Error.shortened()
	case *ToolCall:
		b.Args = core.Raw(clipped(b.Args, maxBrief))
	case *ToolResult:
		b.Result, b.Error = core.Raw(clipped(b.Result, maxBrief)), b.Error.shortened()
	case *Interruption:
		b.Affects = slices.Clone(b.Affects[:min(len(b.Affects), 2)]) // one, or more
	}
}

func (e *Fault) shortened() *Fault {
	if e == nil {
		return nil
	}
	return &Fault{Code: e.Code, Message: clipped(e.Message, maxBrief)}
}

// shortened keeps the first bytes of its parts: as many as a conversation has of
// a call, so that a decision can still be read.
func (m *Message) shortened() *Message {
	s := &Message{ID: m.ID, Role: m.Role, CreatedAt: m.CreatedAt}
	for left, i := maxDone, 0; left > 0 && i < len(m.Content); i++ {
		p := m.Content[i]
		p.Text, p.URL = clipped(p.Text, left), clipped(p.URL, left)
		p.Input, p.Output = core.Raw(clipped(p.Input, left)), core.Raw(clipped(p.Output, left))
		left -= len(p.Text) + len(p.URL) + len(p.Input) + len(p.Output) + len(p.Name) + len(p.ID) + 64 // an empty one takes room too
		s.Content = append(s.Content, p)
	}
	return s
}
