package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Reason codes of a program's faults. Each of them asks a person.
const (
	ReasonError     = "policy.error"
	ReasonTimeout   = "policy.timeout"
	ReasonBadOutput = "policy.bad_output"
)

// MaxAnswer is the longest answer of a program, in bytes.
const MaxAnswer = 16 << 10

// Program is a policy that is a program: one JSON document on its stdin, one
// Reply on its stdout.
type Program struct {
	Name        string   // of the policy's version in its tenant: a process that stays answers to one name only
	Digest      string   // sha256 of Source, hex: names its file
	Interpreter []string // the file of Source follows it; empty runs the file itself
	Source      []byte
	Serve       bool // it stays: a line in, a line out
}

// Programs runs policy programs, jailed where the system can.
type Programs interface {
	// Decide never fails: a fault is a hitl with one of the three reason codes.
	Decide(ctx context.Context, p *Program, input []byte) Reply
	// Jailed says whether programs run in a jail here, and if not, why.
	Jailed(ctx context.Context) (bool, string)
	// Release ends the process of a program that stays and rules no more,
	// without waiting. It is started again when it is asked again.
	Release(p *Program)
}

// Reply is what a program answers:
//
//	{"decision":"approve|deny|abort|hitl","reason_code":"^[a-z0-9_.]+$",
//	 "confidence":0..1,"rationale":"…","rule_id":"…"?}
type Reply struct {
	Decision   string   `json:"decision"`
	ReasonCode string   `json:"reason_code"`
	Confidence *float64 `json:"confidence"`
	Rationale  string   `json:"rationale"`
	RuleID     string   `json:"rule_id,omitempty"`

	Fault       bool   `json:"-"` // the program failed; the judge answers for it
	Unsandboxed bool   `json:"-"` // it ran without a jail
	Stderr      string `json:"-"` // what it said beside, sanitised
}

// FaultReply is the answer in place of a program that failed.
func FaultReply(reason, why string) Reply {
	none := 0.0
	return Reply{Decision: string(HITL), ReasonCode: reason, Confidence: &none, Rationale: core.ClipTo(why, 512), Fault: true}
}

const (
	replyAbort   = "abort"
	maxRationale = 4096
)

// ParseReply reads a program's answer. Unknown and missing fields, trailing
// output and values outside their enum or range are errors.
func ParseReply(out []byte) (Reply, error) {
	var r Reply
	var given map[string]core.Raw
	if len(out) > MaxAnswer {
		return Reply{}, fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	if len(strings.TrimSpace(string(out))) == 0 {
		return Reply{}, errors.New("it answered nothing")
	}
	err := core.Decode(out, &given)
	if err == nil {
		err = core.Decode(out, &r)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("read the answer: %w", err)
	}
	says := func(name string) bool { v := given[name]; return v != nil && v.Kind() != 'n' }
	for _, name := range []string{"decision", "reason_code", "confidence", "rationale"} {
		if !says(name) {
			return Reply{}, errors.New(name + ": missing")
		}
	}
	switch {
	case !isWord(r.Decision):
		return Reply{}, core.Invalid("decision", r.Decision, replyWords)
	case !reasonName().MatchString(r.ReasonCode) || strings.HasPrefix(r.ReasonCode, "policy."):
		return Reply{}, core.Invalid("reason_code", r.ReasonCode, "1-64 of a-z 0-9 _ . that do not start with policy.")
	case !(*r.Confidence >= 0 && *r.Confidence <= 1):
		return Reply{}, core.Invalid("confidence", *r.Confidence, "0-1")
	case len(r.Rationale) > maxRationale:
		return Reply{}, core.Invalid("rationale", r.Rationale, fmt.Sprintf("at most %d bytes", maxRationale))
	case says("rule_id") && !ruleName().MatchString(r.RuleID):
		return Reply{}, core.Invalid("rule_id", r.RuleID, "1-64 of a-z 0-9 . _ -, starting with a letter or digit")
	}
	return r, nil
}

// replyWords are what a program may decide.
const replyWords = "approve, deny, abort, hitl"

func isWord(s string) bool { return slices.Contains(strings.Split(replyWords, ", "), s) }

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
	Door        core.Door      `json:"door,omitempty"`       // mcp where a client of a model asks; it may be left out
	Session     string         `json:"session,omitempty"`
	Contained   bool           `json:"contained,omitzero"` // nothing but the caller's own tree, home and /tmp can feel it
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
			Kind: cmp.Or(in.Action.Kind, KindTool), Server: in.Action.Server, Tool: in.Action.Tool, CallID: in.Action.CallID,
			Args: append(core.Raw(nil), in.Action.Args...), Effects: in.Action.Effects,
		},
		Agent: AgentRef{Name: in.Agent.Name, Role: in.Agent.Role, Project: in.Agent.Project, Profile: in.Agent.Profile}, Contained: Containment{Holds: in.Context.Contained}, Intent: in.Action.Intent, Risk: in.Action.Risk,
		By: core.Caller{Tenant: tenant, Name: in.Context.RequestedBy, Kind: cmp.Or(in.Context.ActorKind, core.Agent), Door: cmp.Or(in.Context.Door, core.DoorEngine)},
	}
	if in.Result != nil {
		a.Confidence, a.Text, a.LastTry = in.Result.Confidence, in.Result.Text, in.Result.LastTry
	}
	switch {
	case a.Gate != "":
	case in.Result != nil:
		a.Gate = GateResult
	default:
		a.Gate = gateOf(a.Action.Kind)
	}
	switch {
	case !slices.Contains([]core.ActorKind{core.Operator, core.Agent, core.Engine}, a.By.Kind):
		return a, core.Invalid("context.actor_kind", string(a.By.Kind), "operator, agent, engine")
	case !slices.Contains(gates, a.Gate):
		return a, core.Invalid("context.gate", string(a.Gate), list(gates))
	case a.Risk != "" && !a.Risk.valid():
		return a, core.Invalid("action.risk", string(a.Risk), "low, medium, high, critical")
	}
	return a, CheckArgs(a.Action.Args)
}

// gateOfKind are the gates of kinds of action that have one of their own.
var gateOfKind = map[string]Gate{KindTool: GateTool, KindCAD: GateCAD, KindIntent: GateIntent, KindNet: GateNet}

// gateOf is where a kind of action is asked about, unless that is said.
func gateOf(kind string) Gate { return cmp.Or(gateOfKind[kind], GateStart) }

// input is a question as a program reads it.
func (r *ruling) input(base *table, tenant string, a *Ask) []byte {
	args := a.Action.Args
	if len(args) == 0 {
		args = core.Raw("{}")
	}
	name := a.Action.Kind
	if a.Action.Tool != "" {
		name = joined("_", a.Action.Server, a.Action.Tool)
	}
	in := Input{
		Schema: 1, TenantID: tenant, TraceID: a.TraceID, TaskID: a.TaskID,
		Action: InputAction{
			Server: a.Action.Server, Tool: a.Action.Tool, CallID: a.Action.CallID, Args: args, Kind: a.Action.Kind,
			Risk: claimed(a.Risk), Intent: strings.ToValidUTF8(a.Intent, "\uFFFD"), Effects: base.does(&a.Action),
		},
		Agent: InputAgent{Name: a.Agent.Name, Role: a.Agent.Role, Project: a.Agent.Project, Profile: a.Agent.Profile},
		Context: InputContext{
			Gate: a.Gate, Driver: a.Driver, Attempt: a.Attempt, Priority: a.Priority,
			RequestedBy: a.By.Name, ActorKind: a.By.Kind, Door: a.By.Door, Session: a.Session, Contained: a.Contained.Holds,
		},
		Name: name, Arguments: args,
	}
	if a.Gate == GateResult {
		in.Result = &InputResult{Confidence: a.Confidence, Text: strings.ToValidUTF8(a.Text, "\uFFFD"), Topics: base.topics.In(a.Text), LastTry: a.LastTry}
	}
	doc, err := core.Encode(in)
	if err != nil { // a program that reads nothing says nothing, and a person is asked
		return nil
	}
	return doc
}
