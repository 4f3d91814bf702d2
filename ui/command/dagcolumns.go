package command

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/op"
)

// briefID is how an event's id is shown in tables: enough to find it by.
const briefID = 13

func recordedColumns(c *call) []column[dag.Recorded] {
	type E = dag.Recorded
	return []column[E]{
		{title: "SEQ", right: true, text: func(e E) string { return strconv.FormatUint(e.Seq, 10) }},
		{title: "EVENT", most: briefID, text: func(e E) string { return e.Event.EventID }},
		{title: "KIND", text: func(e E) string { return string(e.Event.Kind) }},
		{title: "AGENT", most: 20, text: func(e E) string { return e.Event.AgentID }},
		{title: "RUN", most: 20, text: func(e E) string { return e.Event.RunID }},
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.Event.TS.Time()) }},
		{title: "POS", wide: true, right: true, text: func(e E) string { return strconv.FormatUint(e.Pos, 10) }},
		{title: "TS", wide: true, text: func(e E) string { return e.Event.TS.String() }},
		{title: "CORRELATION", wide: true, text: func(e E) string { return e.Event.CorrelationID }},
		{title: "TASK", wide: true, text: func(e E) string { return e.Event.TaskID }},
		{title: "TRACE", wide: true, text: func(e E) string { return e.Event.TraceID }},
		{title: "WHAT", most: 60, text: func(e E) string { return e.Event.Brief() }},
	}
}

func dagCallColumns(c *call) []column[dag.Call] {
	type C = dag.Call
	return []column[C]{
		{title: "CALL", most: 20, text: func(x C) string { return x.CallID }},
		{title: "SERVER", most: 20, text: func(x C) string { return x.Server }},
		{title: "TOOL", most: 24, text: func(x C) string { return x.Tool }},
		{title: "STATUS", text: func(x C) string { return x.Status }},
		{title: "MS", right: true, text: func(x C) string { return count(x.DurationMS) }},
		{title: "AGENT", most: 20, text: func(x C) string { return x.AgentID }},
		{title: "AGE", right: true, text: func(x C) string { return c.age(x.CalledAt.Time()) }},
		{title: "RUN", wide: true, text: func(x C) string { return x.RunID }},
		{title: "CALL EVENT", wide: true, text: func(x C) string { return x.CallEvent }},
		{title: "RESULT EVENT", wide: true, text: func(x C) string { return x.ResultEvent }},
		{title: "ARGS", most: 40, text: func(x C) string { return string(x.Args) }},
		{title: "RESULT", wide: true, text: func(x C) string { return string(x.Result) }},
	}
}

func stepColumns() []column[dag.Step] {
	type S = dag.Step
	return []column[S]{
		{title: "STEP", right: true, text: func(s S) string { return strconv.Itoa(s.Depth) }},
		{title: "NODE", most: 40, text: func(s S) string { return s.Node.String() }},
		{title: "EDGE", text: func(s S) string { return string(s.Edge.Type) }},
		{title: "FROM", most: 30, text: func(s S) string { return s.Edge.From.String() }},
		{title: "TO", most: 30, text: func(s S) string { return s.Edge.To.String() }},
		{title: "EVENT", most: briefID, text: func(s S) string { return s.EventID }},
		{title: "TS", wide: true, text: func(s S) string { return s.TS.String() }},
	}
}

func resourceColumns(c *call) []column[dag.ResourceAt] {
	type R = dag.ResourceAt
	kind := func(r R) (kind, name string) {
		if r.Resource != nil {
			return string(r.Resource.Kind), r.Resource.Name
		}
		return "", ""
	}
	return []column[R]{
		{title: "RESOURCE", most: 40, text: func(r R) string { return r.ID }},
		{title: "KIND", text: func(r R) string { k, _ := kind(r); return k }},
		{title: "NAME", most: 24, text: func(r R) string { _, n := kind(r); return n }},
		{title: "LIVENESS", text: func(r R) string { return string(r.Liveness.Status) }},
		{title: "OWNERS", most: 40, text: func(r R) string {
			var all []string
			for _, o := range r.Owners {
				all = append(all, o.String())
			}
			return strings.Join(all, " ")
		}},
		{title: "MOUNTS", right: true, text: func(r R) string { return count(int64(len(r.Mounts))) }},
		{title: "AGE", right: true, text: func(r R) string { return c.age(r.Since.Time()) }},
		{title: "EVENT", wide: true, text: func(r R) string { return r.EventID }},
	}
}

func mountColumns(*call) []column[dag.Mount] {
	type M = dag.Mount
	return []column[M]{
		{title: "RESOURCE", most: 40, text: func(m M) string { return m.ResourceID }},
		{title: "HOLDER", most: 40, text: func(m M) string { return m.Holder.String() }},
		{title: "MODE", text: func(m M) string { return string(m.Mode) }},
		{title: "MOUNT", most: 40, text: func(m M) string { return m.Mount }},
		{title: "FROM", text: func(m M) string { return stamp(m.Since.Time()) }},
		{title: "TO", text: func(m M) string { return stamp(m.Until.Time()) }},
		{title: "EVENT", wide: true, text: func(m M) string { return m.EventID }},
	}
}

func policyChangeColumns(c *call) []column[dag.PolicyChange] {
	type P = dag.PolicyChange
	return []column[P]{
		{title: "POLICY", most: 40, text: func(p P) string { return p.PolicyID }},
		{title: "CHANGE", text: func(p P) string { return p.Change }},
		{title: "RULES", text: func(p P) string {
			if p.Active {
				return "now"
			}
			return ""
		}},
		{title: "TESTS", text: func(p P) string {
			if p.Policy == nil || p.Policy.TestsSummary == nil {
				return ""
			}
			return fmt.Sprintf("%d/%d", p.Policy.TestsSummary.Passed, p.Policy.TestsSummary.Total)
		}},
		{title: "BY", most: 20, text: func(p P) string { return cmp.Or(p.By, p.AgentID) }},
		{title: "AGE", right: true, text: func(p P) string { return c.age(p.TS.Time()) }},
		{title: "EVENT", most: briefID, text: func(p P) string { return p.EventID }},
		{title: "NOTES", most: 40, text: func(p P) string { return p.Notes }},
	}
}

func forkColumns(c *call) []column[op.ForkRow] {
	one := func(fork func(*dag.Fork) string, ancestor func(*dag.Ancestor) string) func(op.ForkRow) string {
		return func(r op.ForkRow) string {
			if r.One != nil {
				return fork(r.One)
			}
			return ancestor(r.Other)
		}
	}
	return []column[op.ForkRow]{
		{title: "AGENT", most: 30, text: one(func(f *dag.Fork) string { return f.AgentID }, func(a *dag.Ancestor) string { return a.Of.String() })},
		{title: "FROM", most: 40, text: one(func(f *dag.Fork) string { return f.FromBranch }, func(a *dag.Ancestor) string { return a.Node.String() })},
		{title: "TO", most: 30, text: one(func(f *dag.Fork) string {
			return strings.TrimSpace(f.ToBranch + " " + strings.Join(f.Subagents, " "))
		}, func(a *dag.Ancestor) string { return string(a.Edge) })},
		{title: "AT", most: briefID, text: one(func(f *dag.Fork) string {
			if f.AtEvent == nil {
				return ""
			}
			return f.AtEvent.EventID
		}, func(a *dag.Ancestor) string { return strconv.Itoa(a.Depth) })},
		{title: "AGE", right: true, text: one(func(f *dag.Fork) string { return c.age(f.TS.Time()) }, func(a *dag.Ancestor) string { return c.age(a.TS.Time()) })},
		{title: "EVENT", most: briefID, text: one(func(f *dag.Fork) string { return f.EventID }, func(a *dag.Ancestor) string { return a.EventID })},
	}
}

// runEvents prints the events of one run in its own columns.
func runEvents(c *call, o *op.Op, out any) (bool, error) {
	page, is := out.(core.Page[dag.Recorded])
	if !is || !o.Given("run") {
		return false, nil
	}
	return true, list(c, page, runColumns(c))
}

// runColumns are those of one run, in its order: what is the same for all its
// events is left out, and what they say has the room.
func runColumns(c *call) []column[dag.Recorded] {
	var out []column[dag.Recorded]
	for _, col := range recordedColumns(c) {
		switch col.title {
		case "AGENT", "RUN", "AGE":
			continue
		case "EVENT":
			col.most = 9 // the first 8 digits are enough to find it by
		case "WHAT":
			col.most = 100
		}
		out = append(out, col)
		if col.title == "SEQ" {
			out = append(out, column[dag.Recorded]{title: "TIME", text: func(e dag.Recorded) string { return e.Event.TS.Time().UTC().Format("15:04:05.000") }})
		}
	}
	return out
}

func momentColumns(c *call) []column[dag.Moment] {
	type M = dag.Moment
	return []column[M]{
		{title: "TS", text: func(m M) string { return m.Event.TS.Time().Format("2006-01-02T15:04:05.000Z07:00") }},
		{title: "KIND", text: func(m M) string { return string(m.Event.Kind) }},
		{title: "STATUS", text: func(m M) string { return m.Status }},
		{title: "MS", right: true, text: func(m M) string {
			if ms, ok := m.Took(); ok {
				return strconv.FormatInt(ms, 10)
			}
			return ""
		}},
		{title: "AGENT", most: 20, text: func(m M) string { return m.Event.AgentID }},
		{title: "EVENT", most: briefID, text: func(m M) string { return m.Event.EventID }},
		{title: "RUN", wide: true, text: func(m M) string { return m.Event.RunID }},
		{title: "TASK", wide: true, text: func(m M) string { return m.Event.TaskID }},
		{title: "WHAT", most: 60, text: func(m M) string {
			if m.Message != nil {
				return m.Message.Brief()
			}
			return m.Brief()
		}},
	}
}

func keptColumns(c *call) []column[resource.View] {
	type V = resource.View
	return []column[V]{
		{title: "RESOURCE", most: 24, text: func(v V) string { return v.ID }},
		{title: "KIND", text: func(v V) string { return string(v.Kind) }},
		{title: "BY", text: func(v V) string { return v.Driver }},
		{title: "ATTACHED", most: 40, text: func(v V) string {
			var all []string
			for _, h := range v.Holders {
				all = append(all, h.AgentID+":"+string(h.Mode))
			}
			return cmp.Or(strings.Join(all, " "), "-")
		}},
		{title: "CAN", most: 30, text: func(v V) string {
			var all []string
			for _, can := range v.Capabilities {
				all = append(all, string(can))
			}
			return cmp.Or(strings.Join(all, ","), "-")
		}},
		{title: "LIVENESS", text: func(v V) string { return string(v.Liveness.Status) }},
		{title: "SNAPSHOTS", right: true, text: func(v V) string { return count(v.Snapshots) }},
		{title: "NAME", most: 60, text: func(v V) string { return v.Name }},
	}
}

func snapshotColumns(c *call) []column[resource.Shown] {
	type S = resource.Shown
	return []column[S]{
		{title: "SNAPSHOT", most: 24, text: func(s S) string { return s.ID }},
		{title: "RESOURCE", most: 24, text: func(s S) string { return s.ResourceRef }},
		{title: "METHOD", text: func(s S) string { return s.Method }},
		{title: "AGENT", most: 20, text: func(s S) string { return s.AgentID }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt.Time()) }},
		{title: "BYTES", right: true, text: func(s S) string {
			if s.SizeBytes == nil {
				return ""
			}
			return count(*s.SizeBytes)
		}},
		{title: "STATE", most: 20, text: func(s S) string { return s.ExternalRef.ID }},
		{title: "NOTES", most: 60, text: func(s S) string { return strings.Join(s.Notes, "; ") }},
	}
}
