package command

import (
	"cmp"
	"strconv"

	"swarmdeck/engine/health"
	"swarmdeck/engine/presence"
	"swarmdeck/engine/swarm"
)

func slotColumns(*call) []column[swarm.Slots] {
	type S = swarm.Slots
	return []column[S]{
		{title: "TENANT", text: func(s S) string { return s.TenantID }},
		{title: "SLOTS", right: true, text: func(s S) string { return strconv.Itoa(s.Slots) }},
		{title: "OF", text: func(s S) string {
			if s.Own {
				return "its own"
			}
			return "the engine"
		}},
	}
}

func troubleColumns(c *call) []column[health.Trouble] {
	return []column[health.Trouble]{
		{title: "TENANT", text: func(t health.Trouble) string { return cmp.Or(t.Tenant, "(all)") }},
		{title: "COMPONENT", text: func(t health.Trouble) string { return t.Component }},
		{title: "ABOUT", text: func(t health.Trouble) string { return t.About }},
		{title: "REASON", text: func(t health.Trouble) string { return t.Reason }},
		{title: "COUNT", right: true, text: func(t health.Trouble) string { return strconv.Itoa(t.Count) }},
		{title: "SINCE", right: true, text: func(t health.Trouble) string { return c.age(t.Since) }},
	}
}

func tenantColumns(c *call) []column[swarm.Tenant] {
	return []column[swarm.Tenant]{
		{title: "TENANT", text: func(t swarm.Tenant) string { return t.TenantID }},
		{title: "STATE", text: func(t swarm.Tenant) string {
			if c.eng != nil && len(c.eng.Health.Of(t.TenantID)) > 0 {
				return "degraded"
			}
			return "ok"
		}},
		{title: "AGE", right: true, text: func(t swarm.Tenant) string { return c.age(t.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(t swarm.Tenant) string { return stamp(t.CreatedAt) }},
	}
}

func visitorColumns(c *call) []column[presence.Visitor] {
	type V = presence.Visitor
	return []column[V]{
		{title: "OPERATOR", text: func(v V) string { return v.Name }},
		{title: "ROLE", text: func(v V) string { return v.Role }},
		{title: "DOOR", text: func(v V) string { return string(v.Door) }},
		{title: "SINCE", right: true, text: func(v V) string { return c.age(v.Since) }},
		{title: "LOOKS AT", text: func(v V) string { return v.Approval }},
	}
}
