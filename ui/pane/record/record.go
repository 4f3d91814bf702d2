// Package record has the panes of the agents' record: what happened in a run,
// one event or node, the graph around it, and forks.
package record

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

const sheetName = "record"

// DAG is what the panes read of the record; *dag.DAG has it.
type DAG interface {
	// Subject narrows a query to run:ID, task:ID, agent:NAME or session:ID, or to
	// the newest run of an agent with a bare NAME.
	Subject(ctx context.Context, tenant, name string, q *dag.Query) error
	Timeline(ctx context.Context, tenant string, q dag.Query) (core.Page[dag.Moment], error)
	// FindNode finds an event or a node by its id, its beginning, or TYPE:ID.
	FindNode(ctx context.Context, tenant, name string) (dag.NodeRef, error)
	Get(ctx context.Context, tenant, event string) (dag.Detail, error)
	Node(ctx context.Context, tenant string, ref dag.NodeRef) (dag.NodeInfo, error)
	At(ctx context.Context, tenant, event string) (dag.State, error)
	Around(ctx context.Context, tenant string, q dag.LineageQuery) (dag.Graph, error)
}

// recorded is what the record has under a name: an event, or else a node.
type recorded struct {
	Event *dag.Detail
	Node  *dag.NodeInfo
}

func fetchRecorded(ctx context.Context, of DAG, tenant, name string) (r recorded, err error) {
	ref, err := of.FindNode(ctx, tenant, name)
	if err != nil {
		return r, err
	}
	if dag.IsEventID(ref.ID) && ref.Type != dag.TypeMessage {
		if e, err := of.Get(ctx, tenant, ref.ID); err == nil {
			return recorded{Event: &e}, nil
		}
	}
	n, err := of.Node(ctx, tenant, ref)
	return recorded{Node: &n}, err
}

// Sheet shows an event or a node.
type Sheet struct {
	*pane.Detail[recorded]
	forks forks
}

// NewSheet makes the sheet of one event of the agents' record, or of a node
// that events speak of: its fields, and what it is linked to.
func NewSheet(of DAG, past Forks) *Sheet {
	return &Sheet{forks: newForks(sheetName, past), Detail: pane.NewDetail(pane.DetailSpec[recorded]{
		Name: sheetName, Item: sheetItem, Live: true,
		Fetch: func(ctx context.Context, tenant, id string) (recorded, error) {
			return fetchRecorded(ctx, of, tenant, id)
		},
		Settled: func(r *recorded) bool { return r.Event != nil },
		Text: func(env pane.Env, r *recorded, out *pane.Paras) {
			if r.Event != nil {
				eventText(env, r.Event, out)
			} else {
				nodeText(env, r.Node, out)
			}
		},
		Title: func(r *recorded) string {
			if r.Event != nil {
				return "record " + graph.Word(string(r.Event.Event.Kind)) + " " + graph.Brief(r.Event.Event.EventID)
			}
			return "record " + graph.Word(string(r.Node.Type)) + " " + r.Node.ID
		},
	})}
}

func (p *Sheet) Do(env pane.Env, action string) (tea.Cmd, bool) {
	if action == "fork" {
		return p.forks.Do(env, p.Selected(env)), true
	}
	return p.Detail.Do(env, action)
}

func (p *Sheet) Update(env pane.Env, body any) tea.Cmd {
	if cmd, mine := p.forks.Take(p.Selected(env).ID, body); mine {
		return cmd
	}
	return p.Detail.Update(env, body)
}

func sheetItem(r *recorded) pane.Item {
	if r.Event != nil {
		return eventItem(&r.Event.Recorded)
	}
	it := nodeItem(dag.NodeRef{Type: r.Node.Type, ID: r.Node.ID})
	switch r.Node.Type {
	case dag.TypeRun:
		it.Part = r.Node.ID
	case dag.TypeAgent:
		it.Agent = r.Node.ID
	}
	return it
}

// eventItem is an event as a thing under the cursor. Its Part is its run.
func eventItem(e *dag.Recorded) pane.Item {
	return pane.Item{
		Kind: sheetName, ID: e.Event.EventID, Part: e.Event.RunID, Task: e.Event.TaskID, Agent: e.Event.AgentID,
		Session: e.Event.SessionID, Trace: e.Event.TraceID,
	}
}

// nodeItem is a node as a thing to open.
func nodeItem(ref dag.NodeRef) pane.Item {
	return pane.Item{Kind: sheetName, ID: ref.String()}
}

// Picture implements pane.Viewer: the lineage of what is under the cursor, else
// of what is shown.
func (p *Sheet) Picture(env pane.Env) pane.Item {
	id := p.Selected(env).ID
	if it := p.Open(env); it.Kind == sheetName {
		id = it.ID
	}
	if id == "" {
		return pane.Item{}
	}
	return pane.Item{Kind: "lineage", ID: id}
}

// eventText writes an event out.
func eventText(env pane.Env, d *dag.Detail, out *pane.Paras) {
	e := &d.Event
	out.Add("event", e.EventID, screen.Accent)
	out.Add("kind", graph.Word(string(e.Kind)), screen.Title)
	out.Add("at", pane.Precise(env.Now, e.TS.Time())+" ("+pane.Age(env.Now, e.TS.Time())+" ago)", screen.Text)
	out.Exact("says", saysOf(e), screen.Text)
	out.Link("run", e.RunID, screen.Accent, pane.Item{Kind: "timeline", ID: "run:" + e.RunID})
	out.Fields(&env, e, "agent:agent_id,opens task:task_id,opens session:session_id,opens correlation:correlation_id,dim trace:trace_id,dim")
	if e.Parent != nil {
		out.Link("parent", e.Parent.EventID, screen.Accent, pane.Item{Kind: sheetName, ID: e.Parent.EventID})
	}
	place := "number " + strconv.FormatUint(d.Seq, 10) + " of its run, "
	if e.RunID == "" {
		place = "number " + strconv.FormatUint(d.Seq, 10) + " outside any run, "
	}
	out.Add("place", place+strconv.FormatUint(d.Pos, 10)+" of the record, taken in "+pane.When(env.Now, d.RecordedAt.Time()), screen.Dim)
	if body, err := core.Encode(e.Body); err == nil && len(body) > len("{}") {
		out.Document("fields", body)
	}
	for i := range e.Nodes {
		n := &e.Nodes[i]
		if body, err := core.Encode(n); err == nil {
			out.Document("states "+graph.Word(string(n.Type))+" "+n.ID(), body)
		}
	}
	edges(d, out)
}

// saysOf is what an event says at length, "" when its fields say it all.
func saysOf(e *dag.Event) string {
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
			text = "from " + nameOf(x.From) + " to "
		}
		out.Link(graph.Word(string(x.Type)), text+nameOf(far)+attrs(x), screen.Text, nodeItem(far))
	}
}

func nameOf(ref dag.NodeRef) string { return graph.Word(string(ref.Type)) + " " + graph.Brief(ref.ID) }

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

// nodeText writes out what was stated about a node.
func nodeText(env pane.Env, n *dag.NodeInfo, out *pane.Paras) {
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
		out.Link("by event", graph.Brief(v.EventID), screen.Accent, pane.Item{Kind: sheetName, ID: v.EventID})
		if m, ok := v.Node.Body.(*dag.Message); ok {
			out.Exact("says", m.Says(), screen.Text)
		}
		if body, err := core.Encode(v.Node); err == nil {
			out.JSON("", body)
		}
	}
}
