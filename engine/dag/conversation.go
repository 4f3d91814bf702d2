package dag

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Conversation is what was said and done up to an event, as far back as it
// fits: JSON objects, one a line, oldest first.
//
//	{"user":TEXT} {"assistant":TEXT} {"system":TEXT}
//	{"call":ID,"tool":NAME,"args":{}} {"result":ID,"status":STATUS,"output":{}}
//	{"interrupted":REASON}
type Conversation struct {
	AgentID string     `json:"agent_id"`
	EventID string     `json:"event_id"`
	Kind    Kind       `json:"kind"` // of that event
	Lines   []string   `json:"lines"`
	Left    bool       `json:"left,omitzero"` // there is more before the first line
	Open    []OpenCall `json:"open,omitempty"`
	Over    bool       `json:"over,omitzero"` // the run had ended by then
}

// Bounds of a conversation.
const (
	maxSaid     = 32 << 10 // bytes of one message
	maxDone     = 8 << 10  // bytes of one call's arguments or result
	maxLookback = 20_000   // events
	maxOrigins  = 16       // agents that one comes from
)

// ConversationQuery asks for a conversation up to an event of an agent.
type ConversationQuery struct {
	Event string
	Bytes int       // of all lines; 0 means 128 KiB
	Since time.Time // events before that are another agent's of the same name
	Run   bool      // only of the event's run
	// Instead is an event that is told in the place of the one it goes up to.
	Instead string
}

// Conversation reads what an agent was told, said, called and got up to an
// event, across its runs; of an agent that is a fork, what it was forked from
// before that. Messages of other lists than main are no part of it.
func (d *DAG) Conversation(ctx context.Context, tenant string, q ConversationQuery) (Conversation, error) {
	if q.Bytes == 0 {
		q.Bytes = 128 << 10
	}
	var c Conversation
	err := d.view(ctx, tenant, "read a conversation", func(r reader) error {
		at, err := r.detail(q.Event)
		if err != nil {
			return err
		}
		c = Conversation{AgentID: at.Event.AgentID, EventID: q.Event, Kind: at.Event.Kind, Lines: []string{}}
		w, err := r.row(at.Pos)
		if err != nil {
			return err
		}
		run, err := r.runAt(w.stream, at.Seq)
		if err != nil {
			return err
		}
		c.Open, c.Over = run.OpenCalls, run.Status == "finished"
		b := &backwards{reader: r, ctx: ctx, c: &c, left: q.Bytes, looked: maxLookback, instead: map[string]*Event{}}
		if q.Instead != "" {
			edited, err := r.detail(q.Instead)
			if err != nil {
				return err
			}
			b.instead[at.Event.EventID] = &edited.Event
		}
		l := listed{streams, record.Seq(w.stream), at.Seq}
		if !q.Run && c.AgentID != "" {
			if l, err = r.of(typeCode(TypeAgent), c.AgentID); err != nil {
				return err
			}
			if l.n, err = r.upto(l, at.Pos); err != nil {
				return err
			}
		}
		return b.read(l, q.Since)
	})
	slices.Reverse(c.Lines)
	return c, audit.Explain(fmt.Sprintf("read the conversation up to %s", core.Clip(q.Event)), err)
}

// backwards gathers a conversation from its end.
type backwards struct {
	reader
	ctx    context.Context
	c      *Conversation
	left   int // bytes
	looked int // events that may still be looked at
	// instead has what stands in the place of events of agents that were forked, by
	// their ids; nil where that is told already.
	instead map[string]*Event
}

func (b *backwards) read(l listed, since time.Time) error {
	agent := b.c.AgentID
	for range maxOrigins {
		first, began, err := b.list(l, since)
		if err != nil || !began || agent == "" {
			return err
		}
		at, of, err := b.origin(agent, since, first)
		if err != nil || at == nil {
			return err
		}
		agent, since = at.Event.AgentID, of
		if l, err = b.of(typeCode(TypeAgent), agent); err != nil {
			return err
		}
		if l.n, err = b.upto(l, at.Pos); err != nil {
			return err
		}
	}
	b.c.Left = true
	return nil
}

// list reads a list from its end; it returns the pos of the oldest event that
// it came to, and whether there is none before that.
func (b *backwards) list(l listed, since time.Time) (first uint64, began bool, err error) {
	for i := l.n; i > 0; i-- {
		if b.looked--; b.looked < 0 {
			b.c.Left = true
			return first, false, nil
		}
		if err := b.ctx.Err(); err != nil {
			return first, false, err
		}
		pos, err := b.entry(l, i)
		if err != nil {
			return first, false, err
		}
		kind, err := b.kind(pos)
		if err != nil {
			return first, false, err
		}
		if kind == KindModelRequest.code() || kind == KindModelResponse.code() {
			continue // no part of it, and large
		}
		e, err := b.event(pos)
		if err != nil {
			return first, false, err
		}
		if e.Event.TS.at.Before(since) {
			return first, true, nil
		}
		first = pos
		told := &e.Event
		if edited, is := b.instead[told.EventID]; is {
			if told = edited; told == nil {
				continue
			}
		}
		if s, is := told.Body.(*Substitution); is && strings.HasPrefix(told.RunID, EditRun("")) {
			b.instead[s.OriginalEvent.EventID] = nil // its replacement is of this run
		}
		line, err := b.line(told)
		if err != nil {
			return first, false, err
		}
		if line == "" {
			continue
		}
		if b.left -= len(line) + 1; b.left < 0 {
			b.c.Left = true
			return first, false, nil
		}
		b.c.Lines = append(b.c.Lines, line)
	}
	return first, true, nil
}

// line is an event as a conversation has it; "" for one that is no part of it.
func (b *backwards) line(e *Event) (string, error) {
	var v any
	switch body := e.Body.(type) {
	case *HistoryAppend:
		if body.List != ListMain {
			return "", nil
		}
		said, err := b.message(e, body.MessageRef)
		if err != nil || said == nil {
			return "", err
		}
		var text []string
		for _, p := range said.Content {
			if p.Type == "text" {
				text = append(text, p.Text)
			}
		}
		if len(text) == 0 {
			return "", nil
		}
		v = map[string]string{string(said.Role): clipped(strings.Join(text, "\n"), maxSaid)}
	case *ToolCall:
		v = struct {
			Call string   `json:"call"`
			Tool string   `json:"tool"`
			Args core.Raw `json:"args"`
		}{body.CallID, body.Tool, clippedJSON(body.Args)}
	case *ToolResult:
		v = struct {
			Result string     `json:"result"`
			Status CallStatus `json:"status"`
			Output core.Raw   `json:"output"`
			Error  string     `json:"error,omitempty"`
		}{body.CallID, body.Status, clippedJSON(body.Result), faultText(body.Error)}
	case *Interruption:
		v = map[string]string{"interrupted": string(body.Reason)}
	default:
		return "", nil
	}
	data, err := core.Encode(v)
	return string(data), err
}

func faultText(f *Fault) string {
	if f == nil {
		return ""
	}
	return clipped(f.Message, maxDone)
}

func clipped[S ~string | ~[]byte](s S, most int) string {
	if len(s) <= most {
		return string(s)
	}
	return strings.ToValidUTF8(string(s[:most]), "") + "…"
}

// clippedJSON keeps an object that fits, and the beginning of one that does
// not as text.
func clippedJSON(v core.Raw) core.Raw {
	if len(v) <= maxDone {
		return v
	}
	return core.MustEncode(map[string]string{"text": clipped(v, maxDone)})
}

// origin is the event that an agent was forked from, and since when the name
// was that of the agent it is of; nil for one that is no fork. Names are given
// again, and anybody may tell of a fork: what counts is the first that was told
// since the agent was made, and before it did anything itself.
func (b *backwards) origin(agent string, since time.Time, before uint64) (at *Recorded, of time.Time, err error) {
	num, _, err := b.num(nameKey(NodeRef{TypeSubagent, agent}))
	if err != nil || num == 0 {
		return nil, of, err
	}
	var told *Event
	err = outEdges.Within(b, record.Seq(num).Byte(relationCode(ForkedFrom)), nil, record.Seq(before), true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
		if b.looked--; b.looked < 0 {
			b.c.Left, told = true, nil
			return false, nil
		}
		e, err := b.event(rest.Seq())
		if err != nil || e.RecordedAt.at.Before(since.Truncate(time.Microsecond)) {
			return false, err
		}
		if e.Event.Kind == KindAgentForked && !e.Event.TS.at.Before(since) {
			told = &e.Event
		}
		return true, b.ctx.Err()
	})
	if err != nil || told == nil {
		return nil, of, err
	}
	_, pos, err := b.place(told.Body.(*AgentForked).AtEvent.EventID)
	if err != nil || pos == 0 {
		return nil, of, err
	}
	e, err := b.event(pos)
	return &e, told.since(agent), err
}

// since is when the parent of a subagent that the event states was made; zero
// when it does not say so: whoever tells of a fork says there what they like.
func (e *Event) since(subagent string) time.Time {
	for _, n := range e.Nodes {
		var c struct {
			Since Time     `json:"since"`
			Rest  core.Raw `json:",embed"`
		}
		if s, ok := n.Body.(*Subagent); ok && s.ID == subagent && core.Decode(s.Constraints, &c) == nil {
			return c.Since.at
		}
	}
	return time.Time{}
}
