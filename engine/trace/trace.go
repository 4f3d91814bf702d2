// Package trace records what agents do into their canonical record (model 4): each
// attempt of a prompt is a run that is told as it happens; what is no agent's prompt is
// told in the transactions that it consists of.
package trace

import (
	"cmp"
	"context"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/health"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// Recorder tells the record what the services have done. It looks into them for that:
// they are filled in before anything runs.
type Recorder struct {
	DAG     *dag.DAG
	Ledger  *audit.Ledger
	Health  *health.Troubles
	Changes Changes // nil finds nothing
	Dir     string  // where agents work that say nothing of it

	Tasks     *task.Table
	Judge     *judge.Judge
	Skills    *skill.Skills
	Egress    *egress.Service
	Trees     *tree.Trees
	Resources *resource.Resources
	Agents    resource.Agents

	left left
}

var (
	_ swarm.Recorder = (*Recorder)(nil)
	_ skill.Recorder = (*Recorder)(nil)
	_ cad.Recorder   = (*Recorder)(nil)
	_ bus.Recorder   = (*Recorder)(nil)
	_ judge.Book     = (*Recorder)(nil)
	_ fleet.Observer = (*Recorder)(nil)
)

// The lists of what is told of a run, beside its conversation, its decisions and its files.
const (
	listPlan      = "plan"
	listMode      = "mode"
	listAttention = "attention"
	listResult    = "result" // what its attempts came to
	listState     = "state"  // of a subagent
	listBus       = "bus"    // messages that it sent, or that came to it
)

// decided is what the record says of a decision.
type decided struct {
	Decision      judge.Decision `json:"decision"`
	ReasonCode    string         `json:"reason_code"`
	DecidedBy     string         `json:"decided_by"`
	DecisionID    string         `json:"decision_id"`
	ApprovalID    string         `json:"approval_id,omitempty"`
	RuleID        string         `json:"rule_id,omitempty"`
	PolicyVersion string         `json:"policy_version"`
	Digest        string         `json:"digest"`
	PriorDigest   string         `json:"prior_digest,omitempty"` // before an edit
	Door          core.Door      `json:"door,omitempty"`
	ShownAt       time.Time      `json:"shown_at,omitzero"`
	Rationale     string         `json:"rationale,omitempty"`
	Abort         bool           `json:"abort,omitzero"`
	Server        string         `json:"server,omitempty"`
	Tool          string         `json:"tool,omitempty"`
	CallID        string         `json:"call_id,omitempty"` // of the door that was called
}

func decidedAs(a judge.Action, d judge.GateDecision) decided {
	return decided{
		Decision: d.Decision, ReasonCode: d.ReasonCode, DecidedBy: d.DecidedBy, DecisionID: d.DecisionID, ApprovalID: d.ApprovalID,
		RuleID: d.RuleID, PolicyVersion: d.PolicyVersion, Digest: d.Digest, PriorDigest: d.PriorDigest, Door: d.Door,
		ShownAt: d.ShownAt, Rationale: d.Rationale, Abort: d.Abort, Server: a.Server, Tool: a.Tool,
	}
}

// letStart is what was decided on a task's start, by the policy or a person; nothing of
// what is kept no longer.
func (r *Recorder) letStart(tx *audit.Tx, t *task.Task) (decided, error) {
	if t.ApprovalID != "" {
		a, err := r.Judge.ApprovalIn(tx, t.ApprovalID)
		if err != nil || a.Gate != judge.GateStart {
			return decided{}, err
		}
		return decided{
			Decision: judge.Approve, ReasonCode: a.ReasonCode, DecidedBy: a.AnsweredBy, DecisionID: a.DecisionID, ApprovalID: a.ApprovalID, RuleID: a.RuleID,
			PolicyVersion: a.PolicyVersion, Digest: a.Digest, PriorDigest: a.PriorDigest, ShownAt: a.ShownAt, Rationale: a.AnswerReason,
		}, nil
	}
	if t.DecisionID == "" {
		return decided{}, nil
	}
	d, err := r.Judge.DecisionIn(tx, t.DecisionID)
	if err != nil || d == nil {
		return decided{}, err
	}
	return decidedAs(judge.Action{}, *d), nil
}

// decide tells a decision about a task or call, if there is one.
func decide(w *dag.Recording, about string, by decided) {
	if by != (decided{}) {
		w.Note(dag.ListDecisions, dag.RoleSystem, about, "decision", by)
	}
}

// infoOf is what a run of a task says of itself.
func infoOf(agent string, t *task.Task) dag.RunInfo {
	reason := "user"
	switch {
	case t.ParentTaskID != "" || t.CreatedKind == core.Agent:
		reason = "subagent"
	case t.CreatedKind == core.Engine:
		reason = "schedule"
	}
	return dag.RunInfo{
		AgentID: agent, TaskID: t.TaskID, SessionID: t.SessionID, TraceID: t.TraceID, Reason: reason,
		AskedBy: t.CreatedBy, AskedKind: string(t.CreatedKind), Attempt: t.Attempt, ParentTask: t.ParentTaskID,
	}
}

// by is in whose name what runs do is recorded.
func by(tenant string) core.Caller { return core.Self(tenant, "recorder") }

// Announced records what an MCP server of a tenant says of its resources, in
// each recorded run that goes on: that their list has changed, or those at
// uris, of 1-4096 bytes each. (Model 4, MCP notifications.)
func (r *Recorder) Announced(ctx context.Context, tenant, server string, list bool, uris []string) error {
	all := core.Map(uris, func(uri string) dag.Body { return &dag.MCPResourceUpdated{Server: server, URI: uri} })
	if list {
		all = append(all, &dag.MCPListChanged{Server: server})
	}
	return r.Ledger.Append(ctx, by(tenant), func(tx *audit.Tx) error { return r.DAG.NotifyIn(tx, all...) })
}

// Overheard implements fleet.Observer.
func (r *Recorder) Overheard(tx *audit.Tx, a fleet.Agent, e fleet.Event) (fresh bool, err error) {
	turn := dag.Elsewhere{Agent: a.Name, Session: a.SessionID, Turn: a.Name + "/" + e.Turn}
	if e.Type == "prompt" {
		return r.DAG.AskedIn(tx, turn, e.Text)
	}
	return true, r.DAG.AnsweredIn(tx, turn, e.Said)
}

// Sent implements bus.Recorder: a message is told of its sender's run, or else of its
// recipient's.
func (r *Recorder) Sent(tx *audit.Tx, m *bus.Message) error {
	role := dag.RoleAssistant
	run, err := r.DAG.OpenRun(tx, m.SenderID)
	if err == nil && run == "" && m.RecipientID != "" {
		role = dag.RoleUser
		run, err = r.DAG.OpenRun(tx, m.RecipientID)
	}
	if err != nil {
		return err
	}
	return r.DAG.Tell(tx, run, func(w *dag.Recording) {
		w.Note(listBus, role, m.MessageID, string(m.MessageType), map[string]any{
			"from": m.SenderID, "to": cmp.Or(m.RecipientID, m.Topic), "correlation_id": m.CorrelationID, "payload": m.Payload,
		})
	})
}
