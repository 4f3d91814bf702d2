package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

func agentColumns(c *call) []column[fleet.Agent] {
	type A = fleet.Agent
	return []column[A]{
		{title: "NAME", text: func(a A) string { return a.Name }},
		{title: "STATE", text: A.State},
		{title: "PROJECT", most: 20, text: func(a A) string { return a.Project }},
		{title: "ROLE", most: 20, text: func(a A) string { return a.Role }},
		{title: "AGE", right: true, text: func(a A) string { return c.age(a.CreatedAt) }},
		{title: "STATUS", wide: true, text: func(a A) string { return string(a.Status) }},
		{title: "PROFILE", wide: true, text: func(a A) string { return a.Profile }},
		{title: "RUNTIME", wide: true, text: func(a A) string { return a.Runtime }},
		{title: "PID", wide: true, right: true, text: func(a A) string { return count(int64(a.PID)) }},
		{title: "RESTARTS", wide: true, right: true, text: func(a A) string { return count(int64(a.Restarts)) }},
		{title: "SESSION", wide: true, text: func(a A) string { return a.SessionID }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "ENDED", wide: true, text: func(a A) string { return string(a.LastStatus) }},
		{title: "TOKENS", wide: true, right: true, text: func(a A) string { return count(a.Usage.Tokens) }},
		{title: "COST", wide: true, right: true, text: func(a A) string { return fmt.Sprintf("$%.2f", a.Usage.CostUSD) }},
		{title: "COMMAND", wide: true, text: func(a A) string { return Join(a.Command) }},
		{title: "LAST", most: 48, text: func(a A) string {
			stuck := ""
			if a.Stuck != nil {
				stuck = a.Stuck.Text
			}
			for _, s := range []string{a.Reason, a.Attention, stuck, a.LastTask} {
				if strings.TrimSpace(s) != "" {
					return s
				}
			}
			return ""
		}},
	}
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

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

// logText is a log line as it is followed.
func logText(l task.LogLine, wide bool) string {
	if wide {
		return fmt.Sprintf("%s %-5s %s %s", stamp(l.Timestamp), l.Level, l.Source, l.Message)
	}
	return fmt.Sprintf("%s %-5s %s", l.Timestamp.UTC().Format("15:04:05"), l.Level, l.Message)
}

func queueColumns(c *call) []column[fleet.Message] {
	type M = fleet.Message
	return []column[M]{
		{title: "PLACE", right: true, text: func(m M) string { return count(int64(m.Place)) }},
		{title: "MESSAGE", text: func(m M) string { return m.MessageID }},
		{title: "WHEN", text: messageWhen},
		{title: "BY", text: func(m M) string { return m.By }},
		{title: "AGE", right: true, text: func(m M) string { return c.age(m.CreatedAt) }},
		{title: "URI", wide: true, text: func(m M) string { return m.URI }},
		{title: "TEXT", most: 60, text: func(m M) string { return m.Text }},
	}
}

// messageWhen says when an agent is told a message.
func messageWhen(m fleet.Message) string {
	switch {
	case m.Held != "":
		return "held"
	case m.Told != "":
		return "told"
	case m.Steers:
		return "now"
	}
	return "after"
}
