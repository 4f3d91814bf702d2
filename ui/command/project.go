package command

import (
	"strings"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
)

func offerColumns(*call) []column[op.Offer] {
	type O = op.Offer
	return []column[O]{
		{title: "PROJECT", text: func(o O) string { return o.Name }},
		{title: "ROLES", text: func(o O) string { return strings.Join(o.Roles, ", ") }},
		{title: "ID", wide: true, text: func(o O) string { return o.ID }},
		{title: "DESCRIPTION", wide: true, most: 60, text: func(o O) string { return o.Description }},
	}
}

func projectColumns(*call) []column[fleet.Project] {
	type P = fleet.Project
	return []column[P]{
		{title: "PROJECT", text: func(p P) string { return p.Name }},
		{title: "ID", wide: true, text: func(p P) string { return p.ID }},
		{title: "DESCRIPTION", most: 60, text: func(p P) string { return p.Description }},
	}
}

func roleColumns(*call) []column[fleet.Role] {
	type R = fleet.Role
	return []column[R]{
		{title: "ROLE", text: func(r R) string { return r.Name }},
		{title: "PROJECT", text: func(r R) string { return r.ProjectName }},
		{title: "MADE AS", most: 60, text: roleMade},
		{title: "ID", wide: true, text: func(r R) string { return r.ID }},
	}
}

// roleMade says what agents of a role are made with.
func roleMade(r fleet.Role) string {
	if r.Template == nil {
		return ""
	}
	parts := append([]string{r.Runtime}, r.Command...)
	if r.Profile != "" {
		parts = append(parts, "("+r.Profile+")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
