package record

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

// state writes out what was so right after an event.
func state(env pane.Env, s *dag.State, out *pane.Paras) {
	if r := s.Run; r != nil {
		runText(env, s, r, out)
	}
	group(env, "agent", s.Agent, s.Run, out)
	group(env, "task", s.Task, s.Run, out)
	group(env, "session", s.Session, s.Run, out)
	out.Head(fmt.Sprintf("resources (%d)", len(s.Mounts)))
	for i := range s.Mounts {
		m := &s.Mounts[i]
		text := pane.Joined(" ", m.ResourceID, string(m.Mode), m.Mount)
		out.Link(graph.Word(string(m.Holder.Type)), text+" since "+pane.Precise(env.Now, m.Since.Time()), screen.Text, nodeItem(dag.NodeRef{Type: dag.TypeResource, ID: m.ResourceID}))
	}
	if len(s.Mounts) == 0 {
		out.Add("", "none in its hands", screen.Dim)
	}
	out.Add("policy", cmp.Or(s.Policy, "the embedded one"), screen.Text)
	out.Head(fmt.Sprintf("messages (the newest %d)", len(s.Messages)))
	for i := range s.Messages {
		m := &s.Messages[i]
		out.Exact(string(m.Role), m.Text(), screen.Text)
	}
	if len(s.Messages) == 0 {
		out.Add("", "none yet", screen.Dim)
	}
}

// runText writes out how the run stood.
func runText(env pane.Env, s *dag.State, r *dag.RunState, out *pane.Paras) {
	st := pane.State{State: screen.StateOf(cmp.Or(r.Exit, r.Status)), Word: r.Status}
	out.Add("run", st.Label(env.Glyphs)+" "+cmp.Or(r.RunID, "outside any run"), st.Role())
	text := pane.Plural(r.Events, "event")
	if !r.StartedAt.IsZero() {
		text += " in " + face.Took(s.TS.Time().Sub(r.StartedAt.Time()))
	}
	out.Add("so far", text+": "+kinds(r.Kinds), screen.Text)
	out.Add("model", r.Model, screen.Text)
	if u := r.Usage; u.TotalTokens > 0 {
		out.Add("tokens", fmt.Sprintf("%d: %d in, %d out", u.TotalTokens, u.PromptTokens, u.CompletionTokens), screen.Text)
	}
	for i := range r.OpenCalls {
		c := &r.OpenCalls[i]
		out.Link("open call", c.Tool+" "+c.CallID+", for "+face.Took(s.TS.Time().Sub(c.TS.Time())), screen.Busy, pane.Item{Kind: "record", ID: c.EventID})
	}
	if n := r.OpenUnlisted; n > 0 {
		out.Add("", "and "+pane.Plural(uint64(n), "more open call"), screen.Busy)
	}
	out.Add("last result", string(r.LastResult), ended(string(r.LastResult)).Role())
	out.Add("interrupted", graph.Word(string(r.Interrupted)), screen.Bad)
}

// kinds counts events by their kind, the most first.
func kinds(n map[dag.Kind]int64) string {
	all := slices.SortedFunc(maps.Keys(n), func(a, b dag.Kind) int {
		if n[a] != n[b] {
			return int(n[b] - n[a])
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(all))
	for i, k := range all {
		parts[i] = fmt.Sprintf("%d %s", n[k], graph.Word(string(k)))
	}
	return strings.Join(parts, ", ")
}

// group writes out what an agent, task or session had come to.
func group(env pane.Env, what string, g *dag.GroupState, own *dag.RunState, out *pane.Paras) {
	if g == nil {
		return
	}
	out.Head(fmt.Sprintf("%s %s", what, g.ID))
	out.Add("events", fmt.Sprintf("%d by then", g.Events), screen.Text)
	for i := range g.Runs {
		r := &g.Runs[i]
		if own != nil && r.RunID == own.RunID && len(g.Runs) == 1 {
			out.Add("runs", "this one", screen.Dim)
			return
		}
		st := pane.State{State: screen.StateOf(cmp.Or(r.Exit, r.Status)), Word: cmp.Or(r.Exit, r.Status)}
		text := st.Label(env.Glyphs) + " " + cmp.Or(r.RunID, "outside any run") + ", " + pane.Plural(r.Events, "event") + ", the last at " + pane.Precise(env.Now, r.LastAt.Time())
		it := pane.Item{}
		if r.RunID != "" {
			it = pane.Item{Kind: timelineName, ID: "run:" + r.RunID}
		}
		out.Link("run", text, st.Role(), it)
	}
}
