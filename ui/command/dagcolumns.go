package command

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
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

func forkColumns(c *call) []column[forkRow] {
	one := func(fork func(*dag.Fork) string, ancestor func(*dag.Ancestor) string) func(forkRow) string {
		return func(r forkRow) string {
			if r.fork != nil {
				return fork(r.fork)
			}
			return ancestor(r.ancestor)
		}
	}
	return []column[forkRow]{
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

// liveRecord offers the newest events, or the runs that they are of.
func liveRecord(c *call, eng *engine.Engine, tenant, kind string) []Candidate {
	page, err := eng.DAG.Events(c.ctx, tenant, dag.Query{Filter: core.Filter{Size: core.MaxPageSize}})
	if kind == "record" {
		return candidates(page.Items, err, func(e dag.Recorded) Candidate { return Candidate{e.Event.EventID, string(e.Event.Kind)} })
	}
	var runs []Candidate
	seen := map[string]bool{}
	for _, e := range page.Items {
		if id := e.Event.RunID; id != "" && !seen[id] {
			seen[id] = true
			runs = append(runs, Candidate{id, e.Event.AgentID})
		}
	}
	return runs
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
