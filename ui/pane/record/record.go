// Package record is the sheet of one event of the agents' record, or of a node
// that events speak of: its fields, and what it is linked to.
package record

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/fork"
	"swarmdeck/ui/screen"
)

// Name is the pane's name and keymap scope.
const Name = "record"

// Pane shows an event or a node.
type Pane struct {
	*pane.Detail[pane.Recorded]
	forks fork.Asker
}

// New makes the pane. Events never change; what is said of a node may.
func New() *Pane {
	return &Pane{forks: fork.New(Name), Detail: pane.NewDetail(pane.DetailSpec[pane.Recorded]{
		Name: Name, Fetch: pane.World.Recorded, Item: item, Live: true,
		Settled: func(r *pane.Recorded) bool { return r.Event != nil },
		Text: func(env pane.Env, r *pane.Recorded, out *pane.Paras) {
			if r.Event != nil {
				Text(env, r.Event, out)
			} else {
				node(env, r.Node, out)
			}
		},
		Title: func(_ pane.Env, r *pane.Recorded) string {
			if r.Event != nil {
				return "record " + graph.Word(string(r.Event.Event.Kind)) + " " + graph.Brief(r.Event.Event.EventID)
			}
			return "record " + graph.Word(string(r.Node.Type)) + " " + r.Node.ID
		},
	})}
}

// Do implements pane.Pane.
func (p *Pane) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action == "fork" {
		return p.forks.Do(env, p.Selected(env)), true
	}
	return p.Detail.Do(env, action)
}

// Update implements pane.Pane.
func (p *Pane) Update(env pane.Env, body any) tea.Cmd {
	if cmd, mine := p.forks.Take(p.Selected(env).ID, body); mine {
		return cmd
	}
	return p.Detail.Update(env, body)
}

func item(r *pane.Recorded) pane.Item {
	if r.Event != nil {
		return Item(&r.Event.Recorded)
	}
	it := pane.RecordOf(dag.NodeRef{Type: r.Node.Type, ID: r.Node.ID})
	switch r.Node.Type {
	case dag.TypeRun:
		it.Part = r.Node.ID
	case dag.TypeAgent:
		it.Agent = r.Node.ID
	}
	return it
}

// Item is an event as a thing under the cursor. Its Part is its run.
func Item(e *dag.Recorded) pane.Item {
	return pane.Item{
		Kind: Name, ID: e.Event.EventID, Part: e.Event.RunID, Task: e.Event.TaskID, Agent: e.Event.AgentID,
		Session: e.Event.SessionID, Trace: e.Event.TraceID,
	}
}

// Picture implements pane.Viewer: the lineage of what is under the cursor, else
// of what is shown.
func (p *Pane) Picture(env pane.Env) pane.Item {
	id := p.Selected(env).ID
	if it := p.Open(env); it.Kind == Name {
		id = it.ID
	}
	if id == "" {
		return pane.Item{}
	}
	return pane.Item{Kind: "lineage", ID: id}
}

// Text writes an event out.
func Text(env pane.Env, d *dag.Detail, out *pane.Paras) {
	e := &d.Event
	out.Add("event", e.EventID, screen.Accent)
	out.Add("kind", graph.Word(string(e.Kind)), screen.Title)
	out.Add("at", pane.Precise(env.Now, e.TS.Time())+" ("+pane.Age(env.Now, e.TS.Time())+" ago)", screen.Text)
	if said := text(e); said != "" {
		out.Exact("says", said, screen.Text)
	}
	out.Link("run", e.RunID, screen.Accent, pane.Item{Kind: "timeline", ID: "run:" + e.RunID})
	out.Link("agent", e.AgentID, screen.Accent, pane.Item{Kind: "agent", ID: e.AgentID, Agent: e.AgentID})
	out.Link("task", e.TaskID, screen.Accent, pane.Item{Kind: "task", ID: e.TaskID, Task: e.TaskID})
	out.Link("session", e.SessionID, screen.Accent, pane.Item{Kind: "session", ID: e.SessionID, Session: e.SessionID})
	out.Add("correlation", e.CorrelationID, screen.Dim)
	out.Add("trace", e.TraceID, screen.Dim)
	if e.Parent != nil {
		out.Link("parent", e.Parent.EventID, screen.Accent, pane.Item{Kind: Name, ID: e.Parent.EventID})
	}
	place := "number " + strconv.FormatUint(d.Seq, 10) + " of its run, "
	if e.RunID == "" {
		place = "number " + strconv.FormatUint(d.Seq, 10) + " outside any run, "
	}
	out.Add("place", place+strconv.FormatUint(d.Pos, 10)+" of the record, taken in "+pane.When(env.Now, d.RecordedAt.Time()), screen.Dim)
	if body, err := core.Encode(e.Body); err == nil && len(body) > len("{}") {
		out.Head("fields")
		out.JSON("", body)
	}
	for i := range e.Nodes {
		n := &e.Nodes[i]
		if body, err := core.Encode(n); err == nil {
			out.Head("states " + graph.Word(string(n.Type)) + " " + n.ID())
			out.JSON("", body)
		}
	}
	edges(d, out)
}

// text is what an event says at length, "" when its fields say it all.
func text(e *dag.Event) string {
	for i := range e.Nodes {
		if m, ok := e.Nodes[i].Body.(*dag.Message); ok {
			return m.Says()
		}
	}
	return ""
}

// edges lists what the event is linked to; enter opens it.
func edges(d *dag.Detail, out *pane.Paras) {
	if len(d.Edges) == 0 {
		return
	}
	out.Head(fmt.Sprintf("edges (%d)", len(d.Edges)))
	for _, x := range d.Edges {
		far, text := x.To, "to "
		switch d.Event.EventID {
		case x.From.ID:
		case x.To.ID:
			far, text = x.From, "from "
		default: // between others: it only tells of it
			text = "from " + name(x.From) + " to "
		}
		out.Link(graph.Word(string(x.Type)), text+name(far)+attrs(x), screen.Text, pane.RecordOf(far))
	}
}

func name(ref dag.NodeRef) string { return graph.Word(string(ref.Type)) + " " + graph.Brief(ref.ID) }

// attrs are an edge's attributes in words.
func attrs(x dag.Edge) string {
	var all []string
	for _, a := range [][2]string{{"list", x.Attrs.List}, {"uri", x.Attrs.URI}, {"mount", x.Attrs.Mount}, {"mode", string(x.Attrs.Mode)}} {
		if a[1] != "" {
			all = append(all, a[0]+" "+a[1])
		}
	}
	if x.Attrs.Seq > 0 {
		all = append(all, "number "+strconv.FormatUint(x.Attrs.Seq, 10))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// node writes out what was stated about a node.
func node(env pane.Env, n *dag.NodeInfo, out *pane.Paras) {
	out.Add("node", n.ID, screen.Accent)
	out.Add("type", string(n.Type), screen.Text)
	switch n.Type {
	case dag.TypeRun:
		out.Link("timeline", "what happened in it", screen.Accent, pane.Item{Kind: "timeline", ID: "run:" + n.ID})
	case dag.TypeAgent:
		out.Link("timeline", "what it did", screen.Accent, pane.Item{Kind: "timeline", ID: "agent:" + n.ID})
	}
	if len(n.Versions) == 0 {
		out.Add("", "events name it, and none states more about it", screen.Dim)
	}
	for i := range n.Versions {
		v := &n.Versions[i]
		out.Head("stated " + pane.When(env.Now, v.TS.Time()))
		out.Link("by event", graph.Brief(v.EventID), screen.Accent, pane.Item{Kind: Name, ID: v.EventID})
		if m, ok := v.Node.Body.(*dag.Message); ok {
			out.Exact("says", m.Says(), screen.Text)
		}
		if body, err := core.Encode(v.Node); err == nil {
			out.JSON("", body)
		}
	}
}
