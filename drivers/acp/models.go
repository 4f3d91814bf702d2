package acp

import (
	"fmt"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// record gives a process that agents share lines of its own to its models. They
// end with it. Those of an agent alone are the agent's.
func (pe *peer) record(spec *cell.Spec) (err error) {
	if !pe.place.Shared || len(pe.place.models) == 0 {
		return nil
	}
	if pe.place.lines, err = pe.pool.r.opt.Models.Open(pe.place.models, spec.Env, keeper.Masked(pe.hides, pe.overhear)); err != nil {
		return err
	}
	spec.Env = pe.place.lines.Environ(spec.Env)
	spec.Wall.Reach = pe.place.lines.Ports()
	return nil
}

// unrecord ends the lines of a shared process.
func (pe *peer) unrecord() {
	if pe.place.Shared {
		pe.place.lines.Close()
	}
}

// hides is the mask of what the process was given.
func (pe *peer) hides() *secret.Mask {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return pe.mask
}

// overhear passes what a shared process and its model say to each other on to
// the agent whose session it is, else to the only one at work. What is nobody's
// is in no record; its tokens count in equal parts for those at work, or for
// all where none is.
func (pe *peer) overhear(asked fleet.Event) (answered func(fleet.Event)) {
	a, among := pe.speaker(asked.Model)
	if a != nil {
		return keeper.Overhear(a.now, a.hear)(asked)
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
		if a.now() != nil {
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
