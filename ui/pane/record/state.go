package record

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/ui/compare"
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
	return strings.Join(core.Map(all, func(k dag.Kind) string { return fmt.Sprintf("%d %s", n[k], graph.Word(string(k))) }), ", ")
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

const compareName = "compare"

// Comparer compares two runs, tasks or agents; *engine.Engine does.
type Comparer interface {
	Compare(ctx context.Context, tenant, a, b string) (dag.Comparison, error)
}

// NewCompare makes the sheet of how two runs differ. Its item's id is both names,
// with a space between.
func NewCompare(of Comparer) *pane.Detail[dag.Comparison] {
	return pane.NewDetail(pane.DetailSpec[dag.Comparison]{
		Name: compareName, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (dag.Comparison, error) {
			a, b, ok := strings.Cut(id, " ")
			if !ok {
				return dag.Comparison{}, core.Invalid("compare", id, "two of run:ID, task:ID, agent:NAME, session:ID or an agent's name")
			}
			return of.Compare(ctx, tenant, a, b)
		},
		Settled: func(c *dag.Comparison) bool { return c.A.Exit != "" && c.B.Exit != "" },
		Title:   func(c *dag.Comparison) string { return "compare " + c.A.Subject + " with " + c.B.Subject },
		Text:    func(_ pane.Env, c *dag.Comparison, out *pane.Paras) { compareText(c, out) },
	})
}

func compareText(c *dag.Comparison, out *pane.Paras) {
	facts := append([]compare.Fact{{A: "A", B: "B"}}, compare.Facts(c)...)
	wide := 0
	for _, f := range facts {
		wide = max(wide, utf8.RuneCountInString(f.A))
	}
	for _, f := range facts {
		out.Rows(f.Name, []pane.Row{{Text: fmt.Sprintf("%-*s  %s", wide, f.A, f.B), Role: roleOf(f)}})
	}
	section(out, "files", c, compare.Files(c))
	section(out, "steps: - A, + B", c, compare.Lines(c))
}

// roleOf has what differs stand out.
func roleOf(f compare.Fact) screen.Role {
	if f.A != f.B {
		return screen.Title
	}
	return screen.Text
}

func section(out *pane.Paras, head string, c *dag.Comparison, lines []compare.Line) {
	if len(lines) == 0 {
		return
	}
	out.Head(head)
	rows := make([]pane.Row, len(lines))
	for i, l := range lines {
		rows[i] = pane.Row{Lead: l.Sign + " ", Text: l.Text, Role: l.Role}
		switch {
		case l.Event != "":
			rows[i].Item = pane.Item{Kind: sheetName, ID: l.Event}
		case l.File != "":
			rows[i].Item = pane.Item{Kind: "diff", ID: "compare:" + c.A.Subject + " " + c.B.Subject, Part: l.File}
		}
	}
	out.Rows("", rows)
}
