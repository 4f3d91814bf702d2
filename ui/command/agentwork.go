package command

import (
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

func logColumns(*call) []column[task.LogLine] {
	type L = task.LogLine
	return []column[L]{
		{title: "TIME", text: func(l L) string { return stamp(l.Timestamp) }},
		{title: "LEVEL", text: func(l L) string { return l.Level }},
		{title: "SOURCE", wide: true, text: func(l L) string { return l.Source }},
		{title: "TASK", wide: true, text: func(l L) string { return l.TaskID }},
		{title: "MESSAGE", text: func(l L) string { return l.Message }},
	}
}

func historyColumns(c *call) []column[fleet.HistoryItem] {
	type H = fleet.HistoryItem
	return []column[H]{
		{title: "TASK", text: func(h H) string { return h.TaskID }},
		{title: "STATUS", text: func(h H) string { return string(h.Status) }},
		{title: "NEEDS YOU", text: func(h H) string {
			if h.NeedsUserAttention {
				return "yes"
			}
			return ""
		}},
		{title: "AGE", right: true, text: func(h H) string { return c.age(h.CreatedAt) }},
		{title: "CREATED", wide: true, text: func(h H) string { return stamp(h.CreatedAt) }},
		{title: "URI", wide: true, text: func(h H) string { return h.URI }},
		{title: "MESSAGE", most: 60, text: func(h H) string { return h.Message }},
	}
}
