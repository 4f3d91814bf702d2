package mcp

import (
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// shape is how the result of an operation stands in an answer.
type shape struct {
	of     reflect.Type
	schema func(o *op.Op) *jsonschema.Schema
	show   func(o *op.Op, out any) any
}

// shapeOf is the shape of an operation's result.
func shapeOf(o *op.Op) shape {
	for _, s := range wholes() {
		if s.of == o.Out {
			return s
		}
	}
	return records(o)
}

// whole shows a result's own members.
func whole[T, V any](view func(T) V) shape {
	return shape{
		of: reflect.TypeFor[T](), schema: func(*op.Op) *jsonschema.Schema { return schemaOf(reflect.TypeFor[V]()) },
		show: func(_ *op.Op, out any) any { return view(out.(T)) },
	}
}

// records show one record by its noun, with what it came to unless it is a message
// itself, and many as a list or a page, with what that is of. Its face says what of a
// record is seen: what helps to act, and nothing that may be secret, such as an
// environment.
func records(o *op.Op) shape {
	zero := reflect.Zero(o.Out).Interface()
	_, of := face.Rows(zero)
	f := op.FaceOf(of)
	if f == nil || f.Called == "" {
		panic(fmt.Sprintf("operation %s: no face shows a %s to clients", o.Name, of))
	}
	members := f.Members()
	one, many := f.Called, face.Many(f.Called)
	if one == "history" {
		many = "tasks"
	}
	_, paged := zero.(interface{ Rows() (any, core.PageInfo) })
	return shape{
		schema: func(o *op.Op) *jsonschema.Schema {
			if o.Out == of {
				s := objectOf("message", &jsonschema.Schema{Type: "string"})
				s.Properties[one] = membersOf(f, o.Filter == nil)
				return s
			}
			all := &jsonschema.Schema{Type: "array", Items: membersOf(f, false)}
			if !paged {
				return objectOf(many, all)
			}
			s := schemaOf(reflect.TypeFor[core.PageInfo]())
			s.Properties[many] = all
			for name := range subjects(o) {
				s.Properties[name] = &jsonschema.Schema{Type: "string"}
			}
			return s
		},
		show: func(o *op.Op, out any) any {
			rows, _ := face.Rows(out)
			shown := map[string]any{}
			switch page, is := out.(interface{ Rows() (any, core.PageInfo) }); {
			case is:
				_, at := page.Rows()
				shown["total_count"], shown["page"], shown["page_size"] = at.Total, at.Page, at.PageSize
				shown["has_next_page"], shown["has_previous_page"] = at.Next, at.Previous
				for name, value := range subjects(o) {
					shown[name] = value
				}
				fallthrough
			case o.Out != of:
				shown[many] = list(members, rows)
			default:
				if o.Effect != op.Reads {
					shown["message"] = line(o.Sentence(out), 1024)
				}
				shown[one] = view(members, face.Row(rows, 0), true)
			}
			return shown
		},
	}
}

// view is what a client sees of a record, all where no members are named; one with
// what only one is shown with.
func view(members []face.Member, v any, one bool) any {
	if len(members) == 0 {
		return v
	}
	shown := map[string]any{}
	for _, m := range members {
		if value := m.Value(v); value != nil && (one || !m.One) {
			shown[m.Name] = value
		}
	}
	return shown
}

func list(members []face.Member, rows reflect.Value) []any {
	all := make([]any, rows.Len())
	for i := range all {
		all[i] = view(members, face.Row(rows, i), false)
	}
	return all
}

// membersOf is the schema of what view makes.
func membersOf(f *face.Face, one bool) *jsonschema.Schema {
	members := f.Members()
	if len(members) == 0 {
		return schemaOf(f.Type)
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: nothing(), Properties: map[string]*jsonschema.Schema{}}
	for _, m := range members {
		if m.One && !one {
			continue
		}
		of := schemaOf(m.Type)
		of.Description = m.About
		s.Properties[m.Name], s.PropertyOrder = of, append(s.PropertyOrder, m.Name)
		if !m.Optional {
			s.Required = append(s.Required, m.Name)
		}
	}
	return s
}

// objectOf is the schema of an object with one member.
func objectOf(name string, member *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", AdditionalProperties: nothing(), Properties: map[string]*jsonschema.Schema{name: member},
	}
}

// subjects are whose list it is: its arguments as they were called.
func subjects(o *op.Op) map[string]string {
	named := map[string]string{}
	for i, of := range o.Params {
		if of.Arg {
			named[parameter(o, of, i).name] = *of.Into.(*string)
		}
	}
	return named
}

// wholes are the results that are shown as they are made, rather than as records with
// what they came to.
func wholes() []shape {
	return []shape{
		madeAgents(),
		whole(func(a op.Answer) cad.Done { return a.Done }),
		whole(viewShownTask), whole(viewPolicy), whole(viewTest),
		whole(func(c op.Cause) swarm.Reason { return c.Reason }), whole(asIs[judge.Explanation]), whole(asIs[judge.BacktestReport]),
	}
}

func asIs[T any](v T) T { return v }

// madeAgents shows the agent that was made, or those that try the same.
func madeAgents() shape {
	agent := op.FaceOf(reflect.TypeFor[fleet.Agent]())
	members := agent.Members()
	return shape{
		of: reflect.TypeFor[op.MadeAgents](),
		schema: func(*op.Op) *jsonschema.Schema {
			s := objectOf("message", &jsonschema.Schema{Type: "string"})
			s.Properties["agent"] = membersOf(agent, true)
			s.Properties["agents"] = &jsonschema.Schema{Type: "array", Items: membersOf(agent, false), Description: "those that try the same"}
			return s
		},
		show: func(o *op.Op, out any) any {
			shown := map[string]any{"message": line(o.Sentence(out), 1024)}
			if rows, of := face.Rows(out); reflect.TypeOf(out) == of {
				shown["agent"] = view(members, face.Row(rows, 0), true)
			} else {
				shown["agents"] = list(members, rows)
			}
			return shown
		},
	}
}

// shownTask is one task, with its result once it is over.
type shownTask struct {
	Task   task.Task   `json:"task"`
	Result *resultView `json:"result,omitempty"`
}

// resultView is a result whose error is a text.
type resultView struct {
	Status      task.Status `json:"status"`
	Output      core.Raw    `json:"output,omitempty"`
	ErrorCode   string      `json:"error_code,omitempty"`
	Error       string      `json:"error,omitempty"`
	CompletedAt time.Time   `json:"completed_at"`
	Confidence  *float64    `json:"confidence,omitempty"`
	Denials     []string    `json:"denials" jsonschema:"decisions that denied something during the run"`
}

func viewShownTask(t op.ShownTask) shownTask {
	out := shownTask{Task: t.Task}
	if r := t.Result; r != nil {
		out.Result = &resultView{
			Status: r.Status, Output: r.Output, CompletedAt: r.CompletedAt, Confidence: r.Confidence, Denials: r.Denials,
		}
		if r.Error != nil {
			out.Result.ErrorCode, out.Result.Error = r.Error.Code, r.Error.Message
		}
	}
	return out
}

// wholePolicy is a policy with its texts.
type wholePolicy struct {
	Policy judge.Policy `json:"policy"`
	Source string       `json:"source"`
	Tests  string       `json:"tests" jsonschema:"its cases, JSON lines"`
}

func viewPolicy(d judge.PolicyDetail) wholePolicy { return wholePolicy{d.Policy, d.Source, d.CaseSet} }

type testedPolicy struct {
	Policy judge.Policy       `json:"policy"`
	Cases  []judge.CaseResult `json:"cases"`
}

func viewTest(t op.TestedPolicy) testedPolicy { return testedPolicy{t.Policy, t.Cases} }
