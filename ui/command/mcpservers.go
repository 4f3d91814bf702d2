package command

import (
	"cmp"

	"swarmdeck/engine/tools"
)

func serverColumns(c *call) []column[tools.Server] {
	type S = tools.Server
	return []column[S]{
		{title: "SERVER", text: func(s S) string { return s.Name }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt) }},
		{title: "PROFILE", text: func(s S) string {
			switch {
			case s.URL != "":
				return ""
			case s.Profile == "open":
				return "OPEN"
			}
			return cmp.Or(s.Profile, "worker")
		}},
		{title: "DIR", wide: true, text: func(s S) string { return s.Dir }},
		{title: "WHAT", most: 60, text: func(s S) string { return Join(s.Command) + s.URL }},
	}
}

func toolColumns(*call) []column[tools.Tool] {
	type T = tools.Tool
	return []column[T]{
		{title: "SERVER", text: func(t T) string { return t.Server }},
		{title: "TOOL", text: func(t T) string { return t.Name }},
		{title: "DESCRIPTION", most: 60, text: func(t T) string { return t.Description }},
	}
}
