package command

import (
	"fmt"

	"swarmdeck/engine/task"
)

func resultColumns(c *call) []column[task.Result] {
	type R = task.Result
	return []column[R]{
		{title: "TASK", text: func(r R) string { return r.TaskID }},
		{title: "STATUS", text: func(r R) string { return string(r.Status) }},
		{title: "CONF", right: true, text: func(r R) string { return confidence(r.Confidence) }},
		{title: "AGE", right: true, text: func(r R) string { return c.age(r.CompletedAt) }},
		{title: "COMPLETED", wide: true, text: func(r R) string { return stamp(r.CompletedAt) }},
		{title: "BY", wide: true, text: func(r R) string { return r.ProducedBy }},
		{title: "TRACE", wide: true, text: func(r R) string { return r.TraceID }},
		{title: "DENIALS", wide: true, right: true, text: func(r R) string { return fmt.Sprint(len(r.Denials)) }},
		{title: "OUTCOME", most: 60, text: func(r R) string {
			if r.Error != nil {
				return r.Error.Code + ": " + r.Error.Message
			}
			return string(r.Output)
		}},
	}
}

func confidence(c *float64) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *c)
}
