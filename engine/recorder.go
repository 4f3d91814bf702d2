package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// recorder writes what agents do into their canonical record (model 4): each
// attempt of a prompt is a run.
type recorder struct {
	dag    *dag.DAG
	ledger *audit.Ledger
	egress *egress.Service
	looker *looker
	// worker is the subagent that runs a task which names none.
	worker   func(tx *audit.Tx, t *task.Task) string
	tasks    func(tx *audit.Tx, id string) (task.Task, error)
	approved func(tx *audit.Tx, id string) (judge.Approval, error)
	decision func(tx *audit.Tx, id string) (*judge.GateDecision, error)
}

// start is what was decided on a task's start, by the policy or a person; nil of what is
// kept no longer.
func (r recorder) start(tx *audit.Tx, t *task.Task) (*decided, error) {
	if t.ApprovalID == "" {
		if t.DecisionID == "" {
			return nil, nil
		}
		d, err := r.decision(tx, t.DecisionID)
		if err != nil || d == nil {
			return nil, err
		}
		by := decidedAs(judge.Action{}, *d)
		return &by, nil
	}
	a, err := r.approved(tx, t.ApprovalID)
	if err != nil || a.Gate != judge.GateStart {
		return nil, err
	}
	return &decided{
		Decision: judge.Approve, ReasonCode: a.ReasonCode, DecidedBy: a.AnsweredBy, DecisionID: a.DecisionID, ApprovalID: a.ApprovalID, RuleID: a.RuleID,
		PolicyVersion: a.PolicyVersion, Digest: a.Digest, PriorDigest: a.PriorDigest, ShownAt: a.ShownAt, Rationale: a.AnswerReason,
	}, nil
}

// The lists of a run's messages, beside its conversation and its decisions.
const (
	listPlan      = "plan"
	listDiff      = "diff"
	listMode      = "mode"
	listAttention = "attention"
)

// began begins the run of an attempt.
func (r recorder) began(ctx context.Context, a fleet.Agent, t task.Task, message string) (*recording, error) {
	rec, err := r.dag.Record(ctx, core.Self(t.TenantID, "recorder"), infoOf(a.Name, &t))
	if err != nil {
		return nil, err
	}
	err = r.ledger.View(ctx, t.TenantID, func(tx *audit.Tx) error {
		return r.allowed(tx, rec, &t)
	})
	if err != nil {
		return nil, err
	}
	rec.Said(dag.ListMain, dag.RoleUser, message)
	return &recording{run: rec, ties: ties{run: rec}, server: a.Runtime, egress: r.egress, tenant: t.TenantID, task: t.TaskID, tally: r.egress.Tally(t.TenantID, a.Name, t.TaskID)}, nil
}

// recording is one run. The errors of single events are kept by the run, which
// returns them at its end.
type recording struct {
	run    *dag.Recording
	server string // of its tool calls: the runtime
	egress *egress.Service
	tenant string
	task   string
	tally  *egress.Tally
	ties   ties
}

func (r *recording) Event(ctx context.Context, e fleet.Event) {
	switch e.Type {
	case "message", "result":
		if e.Text != "" {
			r.run.Said(dag.ListMain, dag.RoleAssistant, e.Text)
		}
	case "prompt":
		r.run.Said(dag.ListMain, dag.RoleUser, e.Text)
	case "thought":
		r.run.Message(dag.ListMain, dag.RoleAssistant, dag.ContentPart{Type: "reasoning", Text: e.Text})
	case "plan":
		r.run.Said(listPlan, dag.RoleAssistant, e.Text)
	case "diff":
		r.run.Wrote(listDiff, e.CallID, e.Path, e.Text)
	case "mode":
		r.run.Said(listMode, dag.RoleSystem, e.Text)
	case "attention":
		r.run.Said(listAttention, dag.RoleAssistant, e.Text)
	case "model_request":
		_ = r.run.Asked(context.WithoutCancel(ctx), e.CallID, modelAsk(e))
	case "model_response": // it may tell that the run is being ended
		_ = r.run.Answered(context.WithoutCancel(ctx), e.CallID, modelAnswer(e))
	case "usage":
		if e.Tokens > 0 || e.CostUSD > 0 || e.Split != (fleet.Split{}) {
			r.run.Note(dag.ListUsage, dag.RoleSystem, "usage", "usage", usage{e.Tokens, e.CostUSD, e.Split, e.Context})
		}
	case "tool_request": // one that had begun, as it seemed, asks now
		if !r.run.Open(callOf(e)) {
			r.call(ctx, e)
		}
	case "tool_call":
		if !r.run.Known(callOf(e)) {
			r.call(ctx, e)
		}
	case "tool_result":
		if e.Tool != "" && !r.run.Known(callOf(e)) { // nobody asked about it
			r.call(ctx, e)
		}
		status, fault := dag.CallOK, (*dag.Fault)(nil)
		if e.Status != "ok" {
			status, fault = dag.CallError, &dag.Fault{Code: cmp.Or(e.Status, "error"), Message: e.Error}
		}
		r.run.Result(callOf(e), status, e.Output, fault)
		r.ties.ends(callOf(e))
	}
}

// usage is what the record says of what a run spent since the last.
type usage struct {
	Tokens  int64   `json:"tokens,omitzero"`
	CostUSD float64 `json:"cost_usd,omitzero"`
	fleet.Split
	Context fleet.Context `json:"context,omitzero"`
}

func (r *recording) call(ctx context.Context, e fleet.Event) {
	args := e.Args
	if len(args) == 0 && e.Text != "" {
		args = core.MustEncode(map[string]string{"text": e.Text})
	}
	r.run.Call("", cmp.Or(r.server, "agent"), cmp.Or(e.Tool, "tool"), callOf(e), args)
	r.ties.tells(&e)
}

func (r *recording) Along(commit func(func(*audit.Tx) error) error) error {
	return r.run.Along(commit)
}

func callOf(e fleet.Event) string { return cmp.Or(e.CallID, "call") }

func (r *recording) Judged(tx *audit.Tx, a judge.Action, d judge.GateDecision) error {
	said := decidedAs(a, d)
	if a.CallID != "" && a.Server != "" && !r.run.Known(a.CallID) { // a door asks
		r.ties.asks(a)
		said.CallID = a.CallID
	}
	return r.run.DecideIn(tx, cmp.Or(a.CallID, "call"), core.MustEncode(said))
}

func decidedAs(a judge.Action, d judge.GateDecision) decided {
	return decided{
		Decision: d.Decision, ReasonCode: d.ReasonCode, DecidedBy: d.DecidedBy, DecisionID: d.DecisionID, ApprovalID: d.ApprovalID,
		RuleID: d.RuleID, PolicyVersion: d.PolicyVersion, Digest: d.Digest, PriorDigest: d.PriorDigest, Door: d.Door,
		ShownAt: d.ShownAt, Rationale: d.Rationale, Abort: d.Abort, Server: a.Server, Tool: a.Tool,
	}
}

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

func (r *recording) Answered(ctx context.Context, e fleet.Event, a fleet.ToolAnswer) {
	switch a.Decision {
	case "approve":
		if len(a.Args) > 0 && !same(a.Args, e.Args) {
			_ = r.run.Substitute(ctx, callOf(e), a.Args, cmp.Or(a.Reason, "the approval was edited"))
		}
	case "":
		_ = r.run.Interrupt(ctx, dag.ReasonCanceled, callOf(e))
	default:
		_ = r.run.Interrupt(ctx, dag.ReasonApprovalDenied, callOf(e))
	}
}

// same compares arguments whatever their spelling.
func same(a, b core.Raw) bool {
	x, errX := core.Canonical(a)
	y, errY := core.Canonical(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (r *recording) Ended(ctx context.Context, out task.Outcome) error {
	why := map[task.Status]dag.Reason{
		task.Cancelled: dag.ReasonCanceled, task.TimedOut: dag.ReasonTimeout, task.Blocked: dag.ReasonApprovalDenied, task.Failed: dag.ReasonCrash,
	}[out.Status]
	if out.Error != nil && out.Error.Code == fleet.CodeClosing {
		why = dag.ReasonShutdown
	}
	// A failure cuts off nothing but what is open, and a denial is in the record already.
	if why != "" && (why != dag.ReasonCrash && why != dag.ReasonApprovalDenied || r.run.Open("")) {
		_ = r.run.Interrupt(ctx, why, "")
	}
	r.run.Network(hostUse(r.tally.End()))
	return errors.Join(r.run.Rest(ctx), r.egress.EndTask(ctx, r.tenant, r.task))
}

// hostUse is a tally as the record has it.
func hostUse(all []egress.HostSum) (use []dag.HostUse) {
	for _, h := range all {
		use = append(use, dag.HostUse{
			Host: h.Host, Port: h.Port, Connections: int64(h.Connections), Refused: int64(h.Refused), Sent: h.Sent, Received: h.Received,
		})
	}
	return use
}

// closeRuns ends the runs in the record whose engine died.
func (e *Engine) closeRuns(ctx context.Context) error {
	tenants, err := e.store.Here(ctx)
	if err != nil {
		return fmt.Errorf("list the tenants: %w", err)
	}
	return e.Health.Tenants(ctx, "record", tenants, func(t string) error { return e.DAG.Recover(ctx, t) })
}

func (r recorder) Overheard(tx *audit.Tx, a fleet.Agent, e fleet.Event) (fresh bool, err error) {
	turn := dag.Elsewhere{Agent: a.Name, Session: a.SessionID, Turn: a.Name + "/" + e.Turn}
	if e.Type == "prompt" {
		return r.dag.AskedIn(tx, turn, e.Text)
	}
	return true, r.dag.AnsweredIn(tx, turn, e.Said)
}
