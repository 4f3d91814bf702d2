package mcp

import (
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
