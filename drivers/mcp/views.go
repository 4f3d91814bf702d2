package mcp

import (
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// shapes are what clients see of the results of operations: records in a member
// of their own, one with what it came to, many with their page; of all else the
// members themselves. Views show what helps to act, and nothing that may be
// secret, such as an environment.
func shapes() (all []shape) {
	add := func(s ...shape) { all = append(all, s...) }
	add(records("agent", "agents", viewAgent)...)
	add(records("agent", "agents", func(o *op.Op, a op.ShownAgent) agentView { return viewAgent(o, a.Agent) })...)
	add(records("agent", "agents", func(o *op.Op, a op.DeletedAgent) agentView { return viewAgent(o, a.Agent) })...)
	add(records("task", "tasks", viewTask)...)
	add(records("history", "tasks", asIs[fleet.HistoryItem])...)
	add(records("project", "projects", asIs[fleet.Project])...)
	add(records("role", "roles", viewRole)...)
	add(madeAgents())
	add(records("approval", "approvals", viewApproval)...)
	add(records("policy", "policies", asIs[judge.Policy])...)
	add(records("grant", "grants", viewGrant)...)
	add(records("message", "messages", asIs[bus.Message])...)
	add(records("log", "logs", asIs[task.LogLine])...)
	add(records("agent", "agents", asIs[cad.Agent])...)
	add(records("workspace", "workspaces", asIs[cad.Workspace])...)
	add(records("skill", "skills", viewSkill)...)
	add(records("subagent", "subagents", viewInvoked)...)
	add(whole(func(_ *op.Op, a op.Answer) cad.Done { return a.Done }))
	add(whole(viewShownTask), whole(viewPolicy), whole(viewTest))
	add(whole(asIs[swarm.Reason]), whole(asIs[judge.Explanation]), whole(asIs[judge.BacktestReport]))
	return all
}

func asIs[T any](_ *op.Op, v T) T { return v }

// agentView is an agent (model 2).
type agentView struct {
	Name        string    `json:"name"`
	WorkspaceID string    `json:"workspace_id"`
	Status      string    `json:"status"`
	Role        string    `json:"role"`
	Project     string    `json:"project"`
	LastTask    string    `json:"last_task,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`

	State      string  `json:"state" jsonschema:"starting, idle, working, waiting for you, pausing, paused, offline or failed"`
	Runtime    string  `json:"runtime"`
	Profile    string  `json:"profile,omitempty" jsonschema:"how much of the machine it reaches: reader, worker or open"`
	Reason     string  `json:"reason,omitempty" jsonschema:"why it is offline or failed"`
	TaskID     string  `json:"task_id,omitempty" jsonschema:"what it works on"`
	SessionID  string  `json:"session_id,omitempty"`
	Attention  string  `json:"attention,omitempty" jsonschema:"why it asks for a person"`
	ApprovalID string  `json:"approval_id,omitempty" jsonschema:"the approval it waits for"`
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"cost_usd"`
}

func viewAgent(_ *op.Op, a fleet.Agent) agentView {
	return agentView{
		Name: a.Name, WorkspaceID: a.WorkspaceID, Status: string(a.Status), Role: a.Role, Project: a.Project,
		LastTask: a.LastTask, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
		State: a.State(), Runtime: a.Runtime, Profile: a.Profile, Reason: a.Reason, TaskID: a.TaskID, SessionID: a.SessionID,
		Attention: a.Attention, ApprovalID: a.Waiting, Tokens: a.Usage.Tokens, CostUSD: a.Usage.CostUSD,
	}
}

// madeAgents shows the agent that was made, or those that try the same.
func madeAgents() shape {
	return shape{
		of: reflect.TypeFor[op.MadeAgents](),
		schema: func(*op.Op) *jsonschema.Schema {
			s := objectOf("message", &jsonschema.Schema{Type: "string"})
			s.Properties["agent"] = schemaOf[agentView]()
			s.Properties["agents"] = &jsonschema.Schema{Type: "array", Items: schemaOf[agentView](), Description: "those that try the same"}
			return s
		},
		show: func(o *op.Op, out any) any {
			shown := map[string]any{"message": line(o.Sentence(out), 1024)}
			switch v := out.(type) {
			case fleet.Agent:
				shown["agent"] = viewAgent(o, v)
			case []fleet.Agent:
				shown["agents"] = views(v, func(a fleet.Agent) agentView { return viewAgent(o, a) })
			}
			return shown
		},
	}
}

// roleView is a role (model 2), with what its agents are made with.
type roleView struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	ProjectID   string   `json:"project_id"`
	ProjectName string   `json:"project_name"`
	Runtime     string   `json:"runtime,omitempty"`
	Profile     string   `json:"profile,omitempty"`
	Tools       []string `json:"tools,omitempty" jsonschema:"that its agents may ask for; none is all"`
	From        bool     `json:"from,omitzero" jsonschema:"an agent can be made from it"`
}

func viewRole(_ *op.Op, r fleet.Role) roleView {
	v := roleView{ID: r.ID, Name: r.Name, ProjectID: r.ProjectID, ProjectName: r.ProjectName, From: r.Template != nil}
	if v.From {
		v.Runtime, v.Profile, v.Tools = r.Runtime, r.Profile, r.Tools
	}
	return v
}

// viewTask leaves its input to who asks for one task: who gave it has it.
func viewTask(o *op.Op, t task.Task) task.Task {
	t.Input = nil
	return t
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

func viewShownTask(_ *op.Op, t op.ShownTask) shownTask {
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

// approvalView is an approval with its action's members beside it.
type approvalView struct {
	ApprovalID   string               `json:"approval_id"`
	Status       judge.ApprovalStatus `json:"status"`
	Gate         judge.Gate           `json:"gate"`
	Kind         string               `json:"kind"`
	Server       string               `json:"server,omitempty"`
	Tool         string               `json:"tool,omitempty"`
	Args         core.Raw             `json:"args,omitempty"`
	Agent        string               `json:"agent,omitempty"`
	TaskID       string               `json:"task_id,omitempty"`
	TraceID      string               `json:"trace_id"`
	Headline     string               `json:"headline"` // what would be done, as the engine reads it
	Intent       string               `json:"intent"`
	Inquiries    []judge.Inquiry      `json:"inquiries,omitempty"`
	Risk         judge.Risk           `json:"risk"`
	ReasonCode   string               `json:"reason_code"`
	Rationale    string               `json:"rationale,omitempty"`
	RuleID       string               `json:"rule_id,omitempty"`
	Digest       string               `json:"digest"`
	RequestedBy  string               `json:"requested_by"`
	CreatedAt    time.Time            `json:"created_at"`
	DeadlineAt   time.Time            `json:"deadline_at"`
	AnsweredBy   string               `json:"answered_by,omitempty"`
	AnsweredAt   time.Time            `json:"answered_at,omitzero"`
	AnswerReason string               `json:"answer_reason,omitempty"`
	VoidReason   string               `json:"void_reason,omitempty"`
	Always       string               `json:"always,omitempty" jsonschema:"the rule that an approval with always makes of it, if nothing else is asked for"`
}

// grantView is a rule.
type grantView struct {
	RuleID     string     `json:"rule_id"`
	ApprovalID string     `json:"approval_id"`
	Gate       judge.Gate `json:"gate"`
	Kind       string     `json:"kind"`
	Server     string     `json:"server,omitempty"`
	Tool       string     `json:"tool,omitempty"`
	Rule       string     `json:"rule" jsonschema:"all that it lets pass, in one line"`
	Agent      string     `json:"agent,omitempty"`
	Session    string     `json:"session_id,omitempty"`
	Owner      string     `json:"owner"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	Uses       int        `json:"uses"`
	MaxUses    int        `json:"max_uses"`
	Revoked    bool       `json:"revoked"`
}

func viewGrant(_ *op.Op, r judge.Rule) grantView {
	return grantView{
		RuleID: r.RuleID, ApprovalID: r.ApprovalID, Gate: r.Gate, Kind: r.Action.Kind, Server: r.Action.Server, Tool: r.Action.Tool,
		Rule: r.Line, Agent: r.Agent, Session: r.Session, Owner: r.Owner, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
		Uses: r.Uses, MaxUses: r.MaxUses, Revoked: r.Revoked,
	}
}

func viewApproval(o *op.Op, a judge.Approval) approvalView {
	v := approvalView{
		ApprovalID: a.ApprovalID, Status: a.Status, Gate: a.Gate, Kind: a.Action.Kind, Server: a.Action.Server, Tool: a.Action.Tool,
		Agent: a.Agent.Name, TaskID: a.TaskID, TraceID: a.TraceID, Headline: a.Subject.Headline, Intent: a.Intent, Inquiries: a.Inquiries, Risk: a.Risk, ReasonCode: a.ReasonCode,
		Rationale: a.Rationale, RuleID: a.RuleID, Digest: a.Digest, RequestedBy: a.RequestedBy,
		CreatedAt: a.CreatedAt, DeadlineAt: a.DeadlineAt, AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt,
		AnswerReason: a.AnswerReason, VoidReason: a.VoidReason, Always: a.Always,
	}
	if o.Filter == nil {
		v.Args = a.Action.Args // with one approval only: they may be large
	}
	return v
}

// wholePolicy is a policy with its texts.
type wholePolicy struct {
	Policy judge.Policy `json:"policy"`
	Source string       `json:"source"`
	Tests  string       `json:"tests" jsonschema:"its cases, JSON lines"`
}

func viewPolicy(_ *op.Op, d judge.PolicyDetail) wholePolicy {
	return wholePolicy{d.Policy, d.Source, d.CaseSet}
}

type testedPolicy struct {
	Policy judge.Policy       `json:"policy"`
	Cases  []judge.CaseResult `json:"cases"`
}

func viewTest(_ *op.Op, t op.TestedPolicy) testedPolicy {
	return testedPolicy{t.Policy, t.Cases}
}

// skillView is a skill without what runs it.
type skillView struct {
	Name         string         `json:"name"`
	Version      string         `json:"version"`
	Description  string         `json:"description,omitempty"`
	Dependencies []string       `json:"dependencies"`
	Tags         []string       `json:"tags"`
	Effects      []skill.Effect `json:"effects"`
	Runner       string         `json:"runner"`
	Timeout      int            `json:"timeout"`
	MaxRetries   int            `json:"max_retries"`
	Digest       string         `json:"digest"`

	ParametersSchema core.Raw `json:"parameters_schema,omitempty"`
	ReturnsSchema    core.Raw `json:"returns_schema,omitempty"`
}

func viewSkill(o *op.Op, s *skill.Skill) skillView {
	v := skillView{
		Name: s.Name, Version: s.Version, Description: s.Description, Dependencies: s.Dependencies, Tags: s.Tags, Effects: s.Effects,
		Runner: s.Runner.Kind, Timeout: s.Timeout, MaxRetries: s.MaxRetries, Digest: s.Digest,
	}
	if o.Filter == nil { // with one skill only: they may be large
		v.ParametersSchema, v.ReturnsSchema = s.ParametersSchema, s.ReturnsSchema
	}
	return v
}

// invokedView is a run of a skill.
type invokedView struct {
	AgentID    string              `json:"agent_id"`
	Name       string              `json:"name,omitempty"`
	State      skill.State         `json:"state"`
	Skill      string              `json:"skill,omitempty"`
	TaskID     string              `json:"task_id,omitempty"`
	TraceID    string              `json:"trace_id,omitempty"`
	ApprovalID string              `json:"approval_id,omitempty" jsonschema:"the approval it waits for"`
	Error      string              `json:"error,omitempty"`
	Results    map[string]core.Raw `json:"results" jsonschema:"by skill name"`
}

func viewInvoked(_ *op.Op, a op.Invoked) invokedView {
	return invokedView{
		AgentID: a.AgentID, Name: a.Name, State: a.State, Skill: a.Skill, TaskID: a.TaskID, TraceID: a.TraceID,
		ApprovalID: a.Waiting, Error: a.Error, Results: a.Results,
	}
}
