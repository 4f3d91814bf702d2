package record

import (
	"cmp"
	"strings"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// row is one event on the axis.
func (p *Timeline) row(env *pane.Env, m *dag.Moment, set func(int, string, screen.Role)) {
	set(0, pane.Precise(env.Now, m.Event.TS.Time()), screen.Dim)
	st, says := what(m)
	set(1, st.Label(env.Glyphs), st.Role())
	set(2, says, screen.Text)
	if ms, ok := m.Took(); ok {
		set(colTook, pane.Millis(ms), screen.Text)
	} else if m.Status == "open" {
		set(colTook, face.Took(env.Now.Sub(m.Event.TS.Time())), screen.Warn)
	}
	set(4, m.Event.AgentID, screen.Accent)
	set(colAxis, p.bar(env, m, p.Width(colAxis)), st.Role())
}

// what is an event's sign and word, and what it says.
func what(m *dag.Moment) (st pane.State, says string) {
	e := &m.Event
	mark := func(s screen.State, word string) pane.State { return pane.State{State: s, Word: word} }
	switch b := e.Body.(type) {
	case *dag.RunStarted:
		return mark(screen.StateOf(m.Status), "run begins"), b.Reason
	case *dag.RunFinished:
		return mark(screen.StateOf(m.Status), "run ends"), b.Exit
	case *dag.HistoryAppend:
		if m.Message != nil {
			if d, ok := m.Message.Decision(); ok {
				return decided(&d), d.Why()
			}
		}
		return mark(screen.Idle, speaker(b, m.Message)), said(m.Message, b.MessageRef)
	case *dag.ModelRequest:
		return mark(ended(m.Status), "request"), strings.TrimSuffix(m.Brief(), " is asked")
	case *dag.ModelResponse:
		return mark(ended(cmp.Or(string(b.Status), string(dag.CallOK))), "response"), strings.TrimSpace(said(m.Message, b.OutputRef) + " " + b.Took())
	case *dag.ToolCall:
		return mark(ended(m.Status), "call"), b.Tool + " " + string(b.Args)
	case *dag.ToolResult:
		says = strings.TrimSpace(m.Tool + " " + string(b.Result))
		if b.Error != nil {
			says = m.Tool + " " + b.Error.Code + ": " + b.Error.Message
		}
		return mark(ended(string(b.Status)), word(b.Status)), says
	case *dag.Interruption:
		return mark(screen.Offline, "interrupted"), graph.Word(string(b.Reason)) + cut(len(b.Affects))
	case *dag.Substitution:
		return mark(screen.Waiting, "substitutes"), graph.Brief(b.ReplacementEvent.EventID) + " for " + graph.Brief(b.OriginalEvent.EventID) + ": " + b.Reason
	case *dag.AgentForked:
		return mark(screen.Working, "forked"), m.Brief()
	case *dag.PolicyActivated:
		return mark(screen.Succeeded, "policy"), m.Brief()
	case *dag.SnapshotCreated:
		return mark(ended(string(b.Outcome)), "snapshot"), m.Brief()
	case *dag.RestoreAttempted:
		return mark(ended(string(b.Outcome)), "restore"), m.Brief()
	case *dag.LivenessProbe:
		return mark(map[dag.Liveness]screen.State{dag.Alive: screen.Succeeded, dag.Dead: screen.Failure}[b.Status], "probe"), m.Brief()
	}
	return mark(screen.Unknown, graph.Word(strings.TrimPrefix(string(e.Kind), "mcp."))), m.Brief()
}

// ended is the sign of what a call or the like came to.
func ended(status string) screen.State {
	switch status {
	case "open":
		return screen.Working
	case "replaced", string(dag.CallCanceled):
		return screen.Cancelled
	case string(dag.OutcomeUnsupported):
		return screen.Blocked
	}
	return screen.StateOf(status)
}

func word(s dag.CallStatus) string {
	if s == dag.CallOK {
		return "result"
	}
	return string(s)
}

func cut(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", which cut a call off"
	}
	return ", which cut calls off"
}

// speaker is who says a message, or the list that it is in when that is not
// the conversation itself.
func speaker(b *dag.HistoryAppend, m *dag.Message) string {
	switch {
	case b.List != "main":
		return b.List
	case m == nil:
		return "message"
	case len(m.Content) > 0 && m.Content[0].Type == "reasoning":
		return "thinks"
	}
	return string(m.Role)
}

func said(m *dag.Message, ref string) string {
	if m == nil {
		return ref
	}
	return m.Short()
}

// decided is the sign and word of a decision.
func decided(d *dag.Decided) pane.State {
	switch d.Decision {
	case "hitl":
		return pane.State{State: screen.Waiting, Word: "asked"}
	case "deny":
		return pane.State{State: screen.Failure, Word: d.Word()}
	}
	return pane.State{State: screen.StateOf(d.Decision), Word: d.Word()}
}

// bar is where an event stands in the time in sight, w cells wide.
func (p *Timeline) bar(env *pane.Env, m *dag.Moment, w int) string {
	whole := p.axis.to.Sub(p.axis.from)
	if w <= 0 {
		return ""
	}
	at := func(t time.Time) int {
		if whole <= 0 {
			return 0
		}
		part := float64(t.Sub(p.axis.from)) / float64(whole) // in integers, years times cells overflow
		return int(min(max(part, 0), 1) * float64(w-1))
	}
	from, to := span(env.Now, m)
	a, b := at(from), at(to)
	g := env.Glyphs
	line := strings.Repeat(" ", a)
	switch {
	case from.Equal(to):
		return line + string(g.Bullet)
	case a == b:
		return line + string(g.ScrollBar)
	}
	return line + string(g.Branch) + strings.Repeat(string(g.Horizontal), b-a-1) + string(g.ScrollBar)
}
