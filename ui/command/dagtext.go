package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/ui/term"
)

// What people read of a state and of a fork that is planned. With -o json they
// get what the engine says.

// showState prints what was so after an event: what the event's run, agent, task
// and session were at, who had what, and what was said last.
func (c *call) showState(s dag.State) error {
	type one struct {
		of  string
		run dag.RunState
	}
	return c.print(s, func(w io.Writer) error {
		fmt.Fprintf(w, "event   %s\nplace   %d of its run, %d of the record\nts      %s\n", s.EventID, s.Seq, s.Pos, s.TS)
		if s.Policy != "" {
			fmt.Fprintf(w, "policy  %s\n", term.Clean(s.Policy))
		}
		var runs []one
		if s.Run != nil {
			runs = append(runs, one{"run", *s.Run})
		}
		for i, g := range []*dag.GroupState{s.Agent, s.Task, s.Session} {
			for n := 0; g != nil && n < len(g.Runs); n++ {
				runs = append(runs, one{[]string{"agent", "task", "session"}[i], g.Runs[n]})
			}
		}
		part(c, w, "Runs", runs, []column[one]{
			{title: "OF", text: func(o one) string { return o.of }},
			{title: "RUN", most: 20, text: func(o one) string { return o.run.RunID }},
			{title: "AGENT", most: 20, text: func(o one) string { return o.run.AgentID }},
			{title: "STATUS", text: func(o one) string { return strings.TrimSpace(o.run.Status + " " + o.run.Exit) }},
			{title: "EVENTS", right: true, text: func(o one) string { return strconv.FormatUint(o.run.Events, 10) }},
			{title: "STARTED", text: func(o one) string { return stamp(o.run.StartedAt.Time()) }},
			{title: "TASK", wide: true, text: func(o one) string { return o.run.TaskID }},
			{title: "HEAD", wide: true, most: briefID, text: func(o one) string { return o.run.Head }},
		})
		part(c, w, "Mounts", s.Mounts, mountColumns(c))
		part(c, w, "Messages", s.Messages, []column[dag.Message]{
			{title: "MESSAGE", most: 20, text: func(m dag.Message) string { return m.ID }},
			{title: "ROLE", text: func(m dag.Message) string { return string(m.Role) }},
			{title: "TEXT", most: 100, text: func(m dag.Message) string { return m.Short() }},
		})
		return nil
	})
}

// showPlan prints a fork as it would be, with what becomes of each resource.
func (c *call) showPlan(p resource.Proposal) error {
	return c.print(p, func(w io.Writer) error {
		data, err := core.Encode(struct {
			resource.Proposal `json:",embed"`
			Parts             *int `json:"resources,omitzero"` // they follow
		}{Proposal: p})
		if err != nil {
			return fmt.Errorf("encode a fork: %w", err)
		}
		if err := details(w, data); err != nil {
			return err
		}
		type P = resource.Part
		part(c, w, "Resources", p.Parts, []column[P]{
			{title: "RESOURCE", most: 24, text: func(x P) string { return x.Resource.ID }},
			{title: "PLAN", text: func(x P) string { return strings.TrimSuffix(string(x.Mode)+":"+x.KeptBy, ":") }},
			{title: "ALLOWED", text: func(x P) string { return strings.Join(core.Strings(x.Allowed...), ",") }},
			{title: "AS IT WAS", text: func(x P) string { return map[bool]string{true: "yes", false: "no"}[x.Exact] }},
			{title: "NAME", wide: true, text: func(x P) string { return x.Resource.Name }},
			{title: "NOTE", most: 80, text: func(x P) string { return x.Note }},
		})
		return nil
	})
}
