package acp

import (
	"fmt"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// hides is the mask of what the process was given.
func (pe *peer) hides() *secret.Mask {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return pe.Mask
}

// overhear passes what a shared process and its model say to each other on to
// the agent whose session it is, else to the only one at work. What is nobody's
// is in no record; its tokens count in equal parts for those at work, or for
// all where none is.
func (pe *peer) overhear(asked fleet.Event) (answered func(fleet.Event)) {
	a, among := pe.speaker(asked.Model)
	if a != nil {
		return keeper.Overhear(a.Now, a.hear)(asked)
	}
	return func(e fleet.Event) {
		var tokens int64
		if e.Model != nil && e.Model.Tokens != nil {
			tokens = max(0, e.Model.Tokens.TotalTokens)
		}
		for i, a := range among {
			part := tokens / int64(len(among))
			if int64(i) < tokens%int64(len(among)) {
				part++
			}
			a.hear(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf(
				"the process that it shares asked a model, for which of its %d agents can't be told: %s, %d tokens, of which %d count for this one", len(among), e.Status, tokens, part)})
			if part > 0 {
				a.hear(fleet.Event{Type: "usage", Tokens: part, Model: e.Model})
			}
		}
	}
}

// speaker is the agent that a request is of; nil where that can't be told, and
// then those among whom it is, by name.
func (pe *peer) speaker(c *fleet.ModelCall) (one *agent, among []*agent) {
	pe.mu.Lock()
	if c != nil {
		for _, id := range c.Sessions {
			if s := pe.sessions[id]; s != nil {
				pe.mu.Unlock()
				return s.a, nil
			}
		}
	}
	members := pe.agents()
	pe.mu.Unlock()
	for _, a := range members {
		if a.Now() != nil {
			among = append(among, a)
		}
	}
	if len(among) == 0 {
		among = members
	}
	if len(among) == 1 {
		return among[0], nil
	}
	return nil, among
}
