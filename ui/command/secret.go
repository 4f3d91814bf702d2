package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

func secretColumns(c *call) []column[op.UsedSecret] {
	type S = op.UsedSecret
	return []column[S]{
		{title: "SECRET", text: func(s S) string { return s.Name }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt) }},
		{title: "CHANGED", right: true, text: func(s S) string { return c.age(s.UpdatedAt) }},
		{title: "BY", most: 20, text: func(s S) string { return s.UpdatedBy }},
		{title: "ORIGIN", wide: true, text: func(s S) string { return s.Origin }},
		{title: "AGENTS", most: 60, text: func(s S) string { return strings.Join(s.Agents, " ") }},
	}
}

// concealed tells of variables that were given in clear and are kept as secrets.
func (c *call) concealed(given, kept map[string]string) {
	for _, text := range op.Concealed(given, kept) {
		fmt.Fprintln(c.env.Stderr, term.Clean(text))
	}
}
