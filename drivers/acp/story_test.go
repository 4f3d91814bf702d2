package acp

import (
	"context"
	"slices"
	"time"

	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// story is what the record has of a task.
type story struct {
	status       task.Status
	code         string
	denials      int
	exit         string
	calls        []toldCall
	results      int
	interrupted  []string
	prompts      []string // messages to the agent
	said         string   // by it, in all
	answers      int
	spent, known int64 // tokens that were counted, and that its model gave
	split        fleet.Split
	unbroken     bool // the lineage of the last answer holds the run's start and its calls
}

// toldCall is a call as the record and the list of what the agent did have it.
type toldCall struct {
	id, status string
	asked      bool
	output     string
}

func (d *desk) story(id string) (s story) {
	d.t.Helper()
	ctx := context.Background()
	var t task.Task
	expect.Await(d.t, "it is over", func() bool {
		t = expect.Of(d.eng.Tasks.Get(ctx, d.by.Tenant, id))(d.t)
		return t.Status.Terminal()
	})
	res := expect.Of(d.eng.Tasks.Result(ctx, d.by.Tenant, id))(d.t)
	s.status, s.denials = res.Status, len(res.Denials)
	if res.Error != nil {
		s.code = res.Error.Code
	}
	page := expect.Of(d.eng.DAG.Events(ctx, d.by.Tenant, dag.Query{Filter: core.Filter{Task: id, Size: 100}, Forward: true}))(d.t)
	last, requests := "", map[string]bool{}
	for _, e := range page.Items {
		switch b := e.Event.Body.(type) {
		case *dag.ModelRequest:
			requests[e.Event.EventID] = true
		case *dag.ToolResult:
			s.results++
		case *dag.Interruption:
			if len(b.Affects) == 0 || slices.ContainsFunc(b.Affects, func(r dag.EventRef) bool { return !requests[r.EventID] }) { // else of what is asked in passing, as for a title
				s.interrupted = append(s.interrupted, string(b.Reason))
			}
		case *dag.RunFinished:
			s.exit = b.Exit
		case *dag.ModelResponse:
			if b.Usage != nil {
				s.known += b.Usage.TotalTokens
			}
		case *dag.HistoryAppend:
			m := e.Event.Nodes[0].Body.(*dag.Message)
			switch {
			case b.List == dag.ListMain && m.Role == dag.RoleUser:
				s.prompts = append(s.prompts, text(m))
			case b.List == dag.ListMain && m.Role == dag.RoleAssistant:
				if said := text(m); said != "" {
					s.answers++
					s.said += said
				}
				last = e.Event.EventID
			case b.List == "usage":
				var u struct {
					Tokens int64 `json:"tokens"`
					fleet.Split
				}
				d.no(core.DecodeStored(m.Content[0].Input, &u))
				s.spent += u.Tokens
				s.split = s.split.Plus(u.Split)
			}
		}
	}
	calls := expect.Of(d.eng.DAG.Calls(ctx, d.by.Tenant, dag.Query{Filter: core.Filter{Task: id, Size: 100}}))(d.t)
	did := expect.Of(d.eng.Fleet.Activity(ctx, d.by.Tenant, d.name, time.Time{}))(d.t)
	for _, c := range calls.Items {
		asked := slices.ContainsFunc(did.Calls, func(a fleet.Call) bool { return a.CallID == c.CallID && a.Asked })
		s.calls = append(s.calls, toldCall{c.CallID, string(c.Status), asked, string(c.Result)})
	}
	slices.Reverse(s.calls) // they come newest first
	d.spent += s.spent
	if d.model == nil {
		// Nothing else knows what it spent.
	} else if most := int64(len(d.model.Requests())) * (model.TokensIn + model.TokensOut); d.spent > most { // what it asks between tasks counts for the next
		d.t.Errorf("%d tokens were counted, of at most %d", d.spent, most)
	}
	s.unbroken = last == "" || d.leadsBack(last, page.Items[:slices.IndexFunc(page.Items, func(e dag.Recorded) bool { return e.Event.EventID == last })])
	return s
}

// leadsBack reports whether a lineage holds the start of the run and all its calls.
func (d *desk) leadsBack(event string, all []dag.Recorded) bool {
	line, err := d.eng.DAG.Lineage(context.Background(), d.by.Tenant, dag.LineageQuery{Node: dag.NodeRef{Type: dag.TypeEvent, ID: event}, Depth: 100})
	d.no(err)
	seen := map[string]bool{}
	for _, s := range line.Steps {
		seen[s.Node.ID] = true
	}
	for _, e := range all {
		if k := e.Event.Kind; (k == dag.KindRunStarted || k == dag.KindToolCall || k == dag.KindToolResult) && !seen[e.Event.EventID] {
			d.t.Logf("%s does not lead back to a %s", event, k)
			return false
		}
	}
	return true
}

func text(m *dag.Message) (all string) {
	for _, p := range m.Content {
		if p.Type == "text" {
			all += p.Text
		}
	}
	return all
}
