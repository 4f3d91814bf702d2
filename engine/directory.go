package engine

import (
	"slices"

	"swarmdeck/engine/bus"
)

// directory is who can send and receive messages: the members of all its
// parts.
type directory []party

// party is one kind of sender and recipient.
type party interface {
	bus.Directory
	Elsewhere(tenant, id string) bool
}

var _ party = directory{}

func (d directory) Known(tenant, id string) bool {
	return slices.ContainsFunc(d, func(p party) bool { return p.Known(tenant, id) })
}

// Elsewhere reports whether another tenant has somebody of this name.
func (d directory) Elsewhere(tenant, id string) bool {
	return slices.ContainsFunc(d, func(p party) bool { return p.Elsewhere(tenant, id) })
}

func (d directory) All(tenant string) []string {
	var all []string
	for _, p := range d {
		all = append(all, p.All(tenant)...)
	}
	return all
}

// Parties lists the agents and subagents that have a mailbox.
func (e *Engine) Parties(tenant string) []string { return e.parties.All(tenant) }
