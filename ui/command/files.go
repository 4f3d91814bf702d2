package command

import (
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/files"
)

func filesColumns(c *call) []column[files.Rule] {
	type R = files.Rule
	return []column[R]{
		{title: "PATH", most: 60, text: func(r R) string { return r.Path }},
		{title: "RULE", text: func(r R) string { return string(r.Effect) }},
		{title: "FOR", text: func(r R) string {
			if whom := r.Whom(); whom != "" {
				return whom
			}
			return "everybody"
		}},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "AGE", right: true, wide: true, text: func(r R) string { return c.age(r.UpdatedAt) }},
	}
}

func liveFileRules(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Files.Rules(c.ctx, tenant)
	return candidates(all, err, func(r files.Rule) Candidate {
		return Candidate{r.Path, strings.TrimSpace(string(r.Effect) + " " + r.Whom())}
	})
}
