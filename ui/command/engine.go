package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/cluster"
)

func engineColumns(c *call) []column[cluster.Engine] {
	type E = cluster.Engine
	return []column[E]{
		{title: "ENGINE", text: func(e E) string { return e.Name }},
		{title: "STATE", text: func(e E) string { return string(e.State) }},
		{title: "SEEN", right: true, text: func(e E) string { return short(time.Duration(e.Silent) * time.Millisecond) }},
		{title: "HERE", text: func(e E) string {
			if e.Here {
				return "here"
			}
			return ""
		}},
		{title: "COUNT", right: true, text: func(e E) string { return strconv.Itoa(e.Count) }},
		{title: "TENANTS", most: 60, text: func(e E) string { return strings.Join(e.Tenants, " ") }},
		{title: "ADDRESS", most: 60, text: func(e E) string { return e.Address }},
		{title: "HOST", wide: true, text: func(e E) string { return e.Host }},
		{title: "VERSION", text: func(e E) string { return e.Version }},
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.Since) }},
	}
}

func liveEngines(c *call, eng *engine.Engine) []Candidate {
	all, err := eng.Cluster.Look(c.ctx)
	return candidates(all.Engines, err, func(e cluster.Engine) Candidate {
		return Candidate{e.Name, fmt.Sprintf("%s, %d tenants", e.State, e.Count)}
	})
}
