package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// showHandover prints what the next operator should know.
func (c *call) showHandover(h engine.Handover) error {
	return c.print(h, func(w io.Writer) error { return writeHandover(c, w, &h) })
}

func writeHandover(c *call, w io.Writer, h *engine.Handover) error {
	say := func(format string, args ...any) { fmt.Fprintln(w, term.Clean(fmt.Sprintf(format, args...))) }
	say("Hand-over of %s at %s, since %s", h.TenantID, stamp(h.At), stamp(h.Since))
	if h.EStop.On {
		say("EMERGENCY STOP IS ON since %s, by %s: %s", stamp(h.EStop.At), h.EStop.By, h.EStop.Reason)
	}
	part(c, w, "Open approvals", h.Approvals, []column[engine.OpenAsk]{
		{title: "APPROVAL", text: func(a engine.OpenAsk) string { return a.ApprovalID }},
		{title: "RISK", text: func(a engine.OpenAsk) string { return string(a.Risk) }},
		{title: "LEFT", right: true, text: func(a engine.OpenAsk) string { return short(max(0, a.DeadlineAt.Sub(h.At))) }},
		{title: "DEADLINE", wide: true, text: func(a engine.OpenAsk) string { return stamp(a.DeadlineAt) }},
		{title: "AGENT", text: func(a engine.OpenAsk) string { return a.Agent }},
		{title: "TASK", wide: true, text: func(a engine.OpenAsk) string { return a.TaskID }},
		{title: "FOR", wide: true, text: func(a engine.OpenAsk) string { return a.EscalatedTo }},
		{title: "APPROVED BY", wide: true, text: func(a engine.OpenAsk) string { return strings.Join(a.ApprovedBy, ", ") }},
		{title: "WHAT", most: 60, text: func(a engine.OpenAsk) string { return a.Headline }},
	})
	part(c, w, "Decisions", h.Decisions, []column[engine.Answered]{
		{title: "APPROVAL", text: func(a engine.Answered) string { return a.ApprovalID }},
		{title: "STATUS", text: func(a engine.Answered) string {
			if a.Edited {
				return string(a.Status) + ", edited"
			}
			return string(a.Status)
		}},
		{title: "RISK", text: func(a engine.Answered) string { return string(a.Risk) }},
		{title: "BY", text: func(a engine.Answered) string { return a.AnsweredBy }},
		{title: "AT", wide: true, text: func(a engine.Answered) string { return stamp(a.AnsweredAt) }},
		{title: "TOOK", right: true, text: func(a engine.Answered) string {
			if a.DecidedS == nil {
				return ""
			}
			return short(lasting(*a.DecidedS))
		}},
		{title: "WAITED", right: true, wide: true, text: func(a engine.Answered) string { return short(lasting(a.WaitedS)) }},
		{title: "WHAT", most: 40, text: func(a engine.Answered) string { return a.Headline }},
		{title: "REASON", most: 40, text: func(a engine.Answered) string { return a.Reason }},
	})
	part(c, w, "Failures", h.Failures, []column[engine.FailedTask]{
		{title: "TASK", text: func(t engine.FailedTask) string { return t.TaskID }},
		{title: "STATUS", text: func(t engine.FailedTask) string { return string(t.Status) }},
		{title: "ERROR", text: func(t engine.FailedTask) string { return t.ErrorCode }},
		{title: "AGENT", text: func(t engine.FailedTask) string { return t.Agent }},
		{title: "AGE", right: true, text: func(t engine.FailedTask) string { return c.age(t.CompletedAt) }},
		{title: "TITLE", most: 48, text: func(t engine.FailedTask) string { return t.Title }},
	})
	part(c, w, "Agents in trouble", h.Agents, []column[engine.TroubledOne]{
		{title: "AGENT", text: func(a engine.TroubledOne) string { return a.Name }},
		{title: "STATE", text: func(a engine.TroubledOne) string { return a.State }},
		{title: "TASK", text: func(a engine.TroubledOne) string { return a.TaskID }},
		{title: "WHY", most: 80, text: func(a engine.TroubledOne) string { return a.Why }},
	})
	part(c, w, "Budgets near their limit", h.Budgets, []column[engine.NearBudget]{
		{title: "SUBJECT", text: func(b engine.NearBudget) string { return b.Subject }},
		{title: "LIMIT", text: func(b engine.NearBudget) string { return b.Limit }},
		{title: "USED", right: true, text: func(b engine.NearBudget) string { return fmt.Sprintf("%.0f%%", 100*b.Share) }},
	})
	part(c, w, "Emergency stops", h.Stops, []column[engine.StopChange]{
		{title: "AT", text: func(s engine.StopChange) string { return stamp(s.At) }},
		{title: "WHAT", text: func(s engine.StopChange) string { return s.Type }},
		{title: "BY", text: func(s engine.StopChange) string { return s.By }},
		{title: "REASON", most: 60, text: func(s engine.StopChange) string { return s.Reason }},
	})
	part(c, w, fmt.Sprintf("Running work (%d queued)", h.Counts.ByStatus[task.Queued]), h.Running, taskColumns(c))
	if len(h.Cut) > 0 || h.To != "" {
		fmt.Fprintln(w)
	}
	if len(h.Cut) > 0 {
		say("More than is listed here: %s", strings.Join(h.Cut, ", "))
	}
	if h.To != "" {
		say("%s takes over; recorded as %s", h.To, h.EventID)
	}
	return nil
}

// part is one heading with its table; an empty one says so in a line.
func part[T any](c *call, w io.Writer, title string, items []T, cols []column[T]) {
	if len(items) == 0 {
		fmt.Fprintf(w, "\n%s: none\n", title)
		return
	}
	fmt.Fprintf(w, "\n%s: %d\n", title, len(items))
	table(w, items, cols, c.g.Output == "wide")
}

func lasting(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
