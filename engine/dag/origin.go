package dag

import (
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

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
