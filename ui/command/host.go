package command

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/host"
)

func hostColumns(c *call) []column[host.Status] {
	type H = host.Status
	return []column[H]{
		{title: "HOST", text: func(h H) string { return h.Name }},
		{title: "STATE", text: H.Word},
		{title: "FOR", text: func(h H) string {
			if h.Since.IsZero() {
				return ""
			}
			return c.age(h.Since)
		}},
		{title: "AGENTS", text: func(h H) string { return fmt.Sprintf("%d of %d", len(h.Agents), h.Slots) }},
		{title: "SYSTEM", text: func(h H) string { return h.System }},
		{title: "ADDRESS", most: 60, text: func(h H) string { return h.Way() }},
		{title: "REASON", most: 80, text: func(h H) string { return h.Reason }},
		{title: "LEASE", wide: true, text: func(h H) string { return (time.Duration(h.LeaseS) * time.Second).String() }},
		{title: "LABELS", wide: true, text: func(h H) string { return assigned(h.Labels) }},
		{title: "LACKS", wide: true, text: func(h H) string { return strings.Join(h.Lacks, ", ") }},
	}
}

func liveHosts(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Hosts.List(c.ctx, tenant)
	return candidates(all, err, func(h host.Status) Candidate { return Candidate{h.Name, h.Word() + " " + h.Way()} })
}
