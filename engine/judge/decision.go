package judge

import (
	"cmp"
	"fmt"
	"strconv"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// decisions are all that was decided, by policies and persons.
type decisions struct {
	ledger   ledger
	policies *policies
	kind     record.Table[decisionRow]
	versions versions
}

// Audit is the decision for the detail of an audit event, as compact JSON:
// {"decision_id","decision","reason_code","rule_id","digest"}.
//
// An approve by policy at the gates task.start, result and cad.operation has no
// event of its own: such decisions come with every task and operation, and the
// caller records one anyway ("task.queued", "task.succeeded"). That event's detail must hold this, in
// the transaction of Commit. Every other decision audits itself.
func (d *GateDecision) Audit() core.Raw { return d.AppendAudit(make([]byte, 0, 256)) }

// AppendAudit appends what Audit is.
func (d *GateDecision) AppendAudit(b []byte) core.Raw {
	o := core.BeginObject(b)
	o.Text("decision_id", d.DecisionID)
	o.Text("decision", string(d.Decision))
	o.Text("reason_code", d.ReasonCode)
	o.Text("rule_id", d.RuleID)
	o.Text("digest", d.Digest)
	return o.End()
}

// folded reports whether the caller's event carries the decision.
func (d *GateDecision) folded() bool {
	return d.Decision == Approve && d.DecidedBy == byPolicy && (d.Gate == GateStart || d.Gate == GateResult || d.Gate == GateCAD)
}

// Commit records the verdict, and opens an approval for a hitl, inside the
// caller's transaction. It fails with ErrStale when the rules changed or an
// always rule ran out since Evaluate: evaluate again. See GateDecision.Audit
// for the audit event.
func (j *approvals) Commit(tx *audit.Tx, ask Ask, v Verdict) (GateDecision, *Approval, error) {
	if err := j.policies.checkVerdict(tx, &ask, &v); err != nil {
		return GateDecision{}, nil, err
	}
	if ask.TaskID == "" || v.ask.task != ask.TaskID || v.ask.tenant != tx.Tenant() { // no digest of Evaluate's
		v.Digest = finish(v.ask.prefix, ask.TaskID, tx.Tenant())
	}
	d := ask.decision(tx.Tenant(), v.Decision, v.ReasonCode)
	d.Confidence, d.Rationale, d.RuleID, d.PolicyVersion, d.Digest = v.Confidence, v.Rationale, v.RuleID, v.PolicyVersion, v.Digest
	d.DecidedBy, d.Door, d.Abort, d.Unsandboxed = byPolicy, cmp.Or(ask.By.Door, core.DoorEngine), v.Abort, v.Unsandboxed
	if v.always != "" {
		if err := j.standing.useRule(tx, &ask, &v); err != nil {
			return GateDecision{}, nil, err
		}
	}
	var a *Approval
	if v.Decision == HITL {
		a = j.newApproval(tx, &ask, &v)
		d.ApprovalID = a.ApprovalID
	}
	if err := j.decisions.record(tx, &d); err != nil {
		return GateDecision{}, nil, err
	}
	if err := keepAsk(tx, &d, &ask); err != nil {
		return GateDecision{}, nil, err
	}
	if a != nil {
		a.DecisionID = d.DecisionID
		if err := j.open(tx, a); err != nil {
			return GateDecision{}, nil, err
		}
	}
	return d, a, nil
}

// decision is one about an ask, still without who decided, id and time.
func (a *Ask) decision(tenant string, d Decision, reason string) GateDecision {
	return GateDecision{
		TenantID: tenant, TraceID: a.TraceID, TaskID: a.TaskID, Decision: d, ReasonCode: reason, Confidence: a.Confidence,
		Gate: a.Gate, Agent: a.Agent.Name, Kind: a.Action.Kind, Session: a.Session,
	}
}

// record appends a decision, and its audit event unless the caller has one. d
// must not be changed any more.
func (j *decisions) record(tx *audit.Tx, d *GateDecision) error {
	policy, err := j.number(tx)
	if err != nil {
		return err
	}
	row := &decisionRow{GateDecision: *d, Number: j.kind.Next(tx), by: policy}
	if err := j.kind.Write(tx, nil, row); err != nil {
		return fmt.Errorf("record a decision: %w", err)
	}
	d.DecisionID, d.CreatedAt = core.NewID(core.DecisionPrefix, tx.Tenant(), row.Number), row.CreatedAt
	if !d.folded() {
		told := *d
		if d.RuleID == "" || d.DecidedBy != byPolicy { // a person's words, or a program's: the row's digest tells of them
			told.Rationale = ""
		}
		if _, err := tx.Record(audit.Entry{
			Type: "judge.outcome", Trace: d.TraceID, Subject: "decision", ID: d.DecisionID, Detail: &told,
		}); err != nil {
			return fmt.Errorf("audit a decision: %w", err)
		}
	}
	tx.Changed("decision", d.DecisionID)
	return nil
}

// decisionRow is a stored decision: the model's names, without what the key,
// the tenant and the rule table already say.
type decisionRow struct {
	GateDecision
	Number    uint64  `json:"n"`
	Policy    uint64  `json:"policy"`
	Rationale *string `json:"rationale"`

	by *active // the policy that rules as it is written
}

// decision fills in what its row leaves out.
func (j *decisions) decision(tx store.Tx, row *decisionRow) (GateDecision, error) {
	d := row.GateDecision
	d.TenantID = tx.Tenant()
	d.DecisionID = core.NewID(core.DecisionPrefix, d.TenantID, row.Number)
	d.DecidedBy = cmp.Or(d.DecidedBy, byPolicy)
	if d.PolicyVersion == "" {
		p, err := j.policy(tx, row.Policy)
		if err != nil {
			return d, err
		}
		d.PolicyVersion, d.Rationale = p.version, p.rationale[d.RuleID]
	}
	if row.Rationale != nil {
		d.Rationale = *row.Rationale
	}
	return d, nil
}

// encode runs on the store's writer with each task, so it is written by hand.
func (r *decisionRow) encode(b []byte) []byte {
	a, d, o := r.by, &r.GateDecision, core.BeginObject(b)
	o.Number("n", int64(r.Number))
	o.Text("decision", string(d.Decision))
	o.Text("reason_code", d.ReasonCode)
	o.Text("gate", string(d.Gate))
	o.Time("created_at", d.CreatedAt, true)
	o.Text("digest", d.Digest)
	o.Text("trace_id", d.TraceID)
	o.Number("policy", int64(a.number))
	o.Optional("task_id", d.TaskID)
	o.Optional("kind", d.Kind)
	o.Optional("rule_id", d.RuleID)
	o.Optional("agent", d.Agent)
	o.Optional("session_id", d.Session)
	o.Optional("door", string(d.Door))
	if d.DecidedBy != byPolicy {
		o.Optional("decided_by", d.DecidedBy)
	}
	o.Optional("proof", d.Proof)
	o.Optional("seat", d.Seat)
	o.Optional("key", d.Key)
	o.Optional("content_sha256", d.ContentSHA256)
	current := d.PolicyVersion == a.ruling.version
	if !current {
		o.Optional("policy_version", d.PolicyVersion)
	}
	if r := a.ruling.table.byID[d.RuleID]; !current || a.ruling.program != nil || r == nil || r.Rationale != d.Rationale {
		o.Text("rationale", d.Rationale)
	}
	o.Optional("prior_digest", d.PriorDigest)
	o.Optional("approval_id", d.ApprovalID)
	if d.Confidence != nil {
		o.Raw("confidence", strconv.AppendFloat(nil, *d.Confidence, 'g', -1, 64))
	}
	if d.Signature != nil {
		o.Raw("signature", core.MustEncode(d.Signature))
	}
	o.Time("shown_at", d.ShownAt, false)
	o.Flag("self_approved", d.SelfApproved)
	o.Flag("abort", d.Abort)
	o.Flag("unsandboxed", d.Unsandboxed)
	return o.End()
}
