package judge

import (
	"strings"

	"swarmdeck/engine/core"
)

// Input is the document that a policy decides about: what a program reads,
// and what cases and `policy decide` give.
//
// A plain {"name":"<server>_<tool>","arguments":{…}} is one too. Programs get
// name and arguments beside the rest.
type Input struct {
	Schema    int          `json:"schema"` // 1
	EventID   string       `json:"event_id,omitempty"`
	TenantID  string       `json:"tenant_id,omitempty"`
	TraceID   string       `json:"trace_id,omitempty"`
	TaskID    string       `json:"task_id,omitempty"`
	Action    InputAction  `json:"action"`
	Agent     InputAgent   `json:"agent"`
	Context   InputContext `json:"context"`
	Result    *InputResult `json:"result,omitzero"` // at the gate result
	Name      string       `json:"name,omitempty"`
	Arguments core.Raw     `json:"arguments,omitzero"`
}

// InputAction is what is to be done.
type InputAction struct {
	Server  string   `json:"server"`
	Tool    string   `json:"tool"`
	CallID  string   `json:"call_id,omitempty"`
	Args    core.Raw `json:"args,omitzero"`
	Kind    string   `json:"kind"` // "tool" when left out
	Risk    Risk     `json:"risk,omitempty"`
	Intent  string   `json:"intent,omitempty"`
	Effects []string `json:"effects,omitempty"` // to a program: what the base policy makes of it
}

// InputAgent is who would act. What the engine does not know is left out.
type InputAgent struct {
	Name              string   `json:"name"`
	Role              string   `json:"role,omitempty"`
	Project           string   `json:"project,omitempty"`
	Profile           string   `json:"profile,omitempty"`
	Workspace         string   `json:"workspace,omitempty"`
	AllowedOperations []string `json:"allowed_operations,omitempty"`
}

// InputContext is around it.
type InputContext struct {
	Gate        Gate           `json:"gate,omitempty"` // by the kind when left out
	Driver      string         `json:"driver"`
	Attempt     int            `json:"attempt"`
	Priority    int            `json:"priority"`
	RequestedBy string         `json:"requested_by,omitempty"`
	ActorKind   core.ActorKind `json:"actor_kind,omitempty"` // agent when left out
	Session     string         `json:"session,omitempty"`
}

// InputResult is a result that is to be committed.
type InputResult struct {
	Confidence *float64 `json:"confidence,omitzero"`
	Text       string   `json:"text"`
	Topics     []string `json:"topics,omitempty"` // to a program: the sensitive ones found
	LastTry    bool     `json:"last_try"`
}

// parseInput reads an input as the question it stands for.
func parseInput(tenant string, data core.Raw) (Ask, error) {
	var in Input
	if len(data) > core.MaxInput {
		return Ask{}, core.CheckObject("input", data, core.MaxInput)
	}
	if err := core.Decode(data, &in); err != nil {
		return Ask{}, err
	}
	if in.Schema != 0 && in.Schema != 1 {
		return Ask{}, core.Invalid("schema", in.Schema, "1")
	}
	if in.Name != "" && in.Action.Tool == "" && in.Action.Kind == "" {
		server, tool, ok := strings.Cut(in.Name, "_")
		if !ok {
			server, tool = "", in.Name
		}
		in.Action.Server, in.Action.Tool, in.Action.Args = server, tool, in.Arguments
	}
	a := Ask{
		Gate: in.Context.Gate, TraceID: in.TraceID, TaskID: in.TaskID, Session: in.Context.Session,
		Attempt: in.Context.Attempt, Priority: in.Context.Priority, Driver: in.Context.Driver,
		Action: Action{
			Kind: in.Action.Kind, Server: in.Action.Server, Tool: in.Action.Tool, CallID: in.Action.CallID,
			Args: append(core.Raw(nil), in.Action.Args...), Effects: in.Action.Effects,
		},
		Agent: AgentRef{Name: in.Agent.Name, Role: in.Agent.Role, Project: in.Agent.Project, Profile: in.Agent.Profile}, Intent: in.Action.Intent, Risk: in.Action.Risk,
		By: core.Caller{Tenant: tenant, Name: in.Context.RequestedBy, Kind: in.Context.ActorKind, Door: core.DoorEngine},
	}
	if in.Result != nil {
		a.Confidence, a.Text, a.LastTry = in.Result.Confidence, in.Result.Text, in.Result.LastTry
	}
	switch a.By.Kind {
	case "":
		a.By.Kind = core.Agent
	case core.Agent, core.Operator, core.Engine:
	default:
		return a, core.Invalid("context.actor_kind", string(a.By.Kind), "operator, agent, engine")
	}
	if a.Action.Kind == "" {
		a.Action.Kind = "tool"
	}
	if a.Gate == "" {
		switch {
		case in.Result != nil:
			a.Gate = GateResult
		case a.Action.Kind == "tool":
			a.Gate = GateTool
		case a.Action.Kind == KindCAD:
			a.Gate = GateCAD
		case a.Action.Kind == KindIntent:
			a.Gate = GateIntent
		case a.Action.Kind == KindNet:
			a.Gate = GateNet
		default:
			a.Gate = GateStart
		}
	}
	if !isGate(a.Gate) {
		return a, core.Invalid("context.gate", string(a.Gate), list(gates))
	}
	if a.Risk != "" && !a.Risk.valid() {
		return a, core.Invalid("action.risk", string(a.Risk), "low, medium, high, critical")
	}
	if err := CheckArgs(a.Action.Args); err != nil {
		return a, err
	}
	return a, nil
}

func isGate(g Gate) bool {
	for _, one := range gates {
		if one == g {
			return true
		}
	}
	return false
}

// input is a question as a program reads it.
func (r *ruling) input(base *table, tenant string, a *Ask) []byte {
	args := a.Action.Args
	if len(args) == 0 {
		args = core.Raw("{}")
	}
	name := a.Action.Tool
	if a.Action.Server != "" {
		name = a.Action.Server + "_" + name
	}
	if a.Action.Tool == "" {
		name = a.Action.Kind
	}
	in := Input{
		Schema: 1, TenantID: tenant, TraceID: a.TraceID, TaskID: a.TaskID,
		Action: InputAction{
			Server: a.Action.Server, Tool: a.Action.Tool, CallID: a.Action.CallID, Args: args, Kind: a.Action.Kind,
			Risk: claimed(a.Risk), Intent: strings.ToValidUTF8(a.Intent, "\uFFFD"), Effects: base.effects.of(&a.Action),
		},
		Agent: InputAgent{Name: a.Agent.Name, Role: a.Agent.Role, Project: a.Agent.Project, Profile: a.Agent.Profile},
		Context: InputContext{
			Gate: a.Gate, Driver: a.Driver, Attempt: a.Attempt, Priority: a.Priority,
			RequestedBy: a.By.Name, ActorKind: a.By.Kind, Session: a.Session,
		},
		Name: name, Arguments: args,
	}
	if a.Gate == GateResult {
		in.Result = &InputResult{Confidence: a.Confidence, Text: strings.ToValidUTF8(a.Text, "\uFFFD"), Topics: base.topics.in(a.Text), LastTry: a.LastTry}
	}
	doc, err := core.Encode(in)
	if err != nil { // a program that reads nothing says nothing, and a person is asked
		return nil
	}
	return doc
}
