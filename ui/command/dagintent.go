package command

import (
	"fmt"
	"io"
	"strconv"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/op"
)

// showIntent prints one intent in full, with its steps.
func showIntent(c *call, o *op.Op, out any) (bool, error) {
	i, is := out.(control.Intent)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.print(i, func(w io.Writer) error {
		data, err := core.Encode(struct {
			control.Intent `json:",embed"`
			Steps          *int `json:"steps,omitzero"` // they follow
		}{Intent: i})
		if err != nil {
			return fmt.Errorf("encode an intent: %w", err)
		}
		if err := details(w, data); err != nil {
			return err
		}
		fmt.Fprintln(w)
		table(w, i.Steps, intentStepColumns(), c.g.Output == "wide")
		return nil
	})
}

func intentStepColumns() []column[control.StepState] {
	type S = control.StepState
	return []column[S]{
		{title: "ACTION", text: func(s S) string { return s.Action }},
		{title: "STATUS", text: func(s S) string { return string(s.Status) }},
		{title: "TRIES", right: true, text: func(s S) string { return strconv.Itoa(s.Tries) }},
		{title: "CALL", most: briefID, text: func(s S) string { return s.Call }},
		{title: "SEEN", most: briefID, text: func(s S) string { return s.End }},
		{title: "UNDO", wide: true, most: briefID, text: func(s S) string { return s.Undo }},
		{title: "ARGS", most: 40, text: func(s S) string { return string(s.Args) }},
		{title: "RESULT", most: 60, text: func(s S) string {
			if s.Error != nil {
				return s.Error.Code + ": " + s.Error.Message
			}
			return string(s.Result)
		}},
	}
}

func intentColumns(c *call) []column[control.Intent] {
	type I = control.Intent
	return []column[I]{
		{title: "INTENT", text: func(i I) string { return i.IntentID }},
		{title: "STATUS", text: func(i I) string { return string(i.Status) }},
		{title: "ACTION", most: 24, text: func(i I) string { return intentAction(&i) }},
		{title: "SUBJECT", most: 30, text: func(i I) string { return i.Subject }},
		{title: "AGENT", most: 20, text: func(i I) string { return i.AgentID }},
		{title: "BY", most: 20, wide: true, text: func(i I) string { return i.By }},
		{title: "TRIES", wide: true, right: true, text: func(i I) string { return strconv.Itoa(i.Tries) }},
		{title: "AGE", right: true, text: func(i I) string { return c.age(i.CreatedAt) }},
		{title: "TASK", wide: true, text: func(i I) string { return i.TaskID }},
		{title: "WHY", most: 60, text: func(i I) string { return i.Why }},
	}
}

// intentAction is the step at hand, and which of how many it is.
func intentAction(i *control.Intent) string {
	if i.At < 1 || i.At > len(i.Steps) {
		return ""
	}
	action := i.Steps[i.At-1].Action
	if len(i.Steps) > 1 {
		action = fmt.Sprintf("%s %d/%d", action, i.At, len(i.Steps))
	}
	return action
}
