package command

import (
	"cmp"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
)

// liveMessages lists the messages that a verb can be used on.
func liveMessages(c *call, eng *engine.Engine, tenant, verb string) []Candidate {
	page := core.Filter{Size: core.MaxPageSize}
	if verb == "dead" {
		all, err := eng.Bus.Dead(c.ctx, tenant, page)
		return candidates(all.Items, err, func(d bus.DeadLetter) Candidate {
			return Candidate{d.MessageID, d.Reason + " " + address(d.Topic, d.RecipientID)}
		})
	}
	page.Status = verb
	all, err := eng.Bus.List(c.ctx, tenant, bus.Query{Filter: page})
	return candidates(all.Items, err, func(m bus.Message) Candidate {
		return Candidate{m.MessageID, strings.TrimSpace(string(m.MessageType) + " " + address(m.Topic, m.RecipientID))}
	})
}

func liveTopics(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Bus.Topics(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	return candidates(all.Items, err, func(t bus.Topic) Candidate { return Candidate{Text: t.Topic} })
}

func liveSubscriptions(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Bus.Subscriptions(c.ctx, tenant)
	var durable []bus.SubscriptionInfo
	for _, s := range all {
		if s.Durable {
			durable = append(durable, s)
		}
	}
	return candidates(durable, err, func(s bus.SubscriptionInfo) Candidate { return Candidate{s.Name, s.Pattern} })
}

// liveParties lists who has a mailbox, and for sending also everybody.
func liveParties(eng *engine.Engine, tenant string, sending bool) []Candidate {
	what := map[string]string{}
	for _, a := range eng.Fleet.Live(tenant) {
		what[a.Name] = a.State() + " " + a.Role
	}
	var all []Candidate
	for _, name := range eng.Parties(tenant) {
		all = append(all, Candidate{name, cmp.Or(what[name], "subagent")})
	}
	all = append(all, Candidate{bus.Controller, "what steers the agents"}, Candidate{bus.System, "the engine and its operators"})
	if sending {
		all = append(all, Candidate{bus.Broadcast, "every agent"})
	}
	return all
}
