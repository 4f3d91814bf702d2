package judge

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

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
	b = append(b, `{"decision_id":"`...)
	b = append(b, d.DecisionID...)
	b = append(b, `","decision":"`...)
	b = append(b, d.Decision...)
	b = append(b, `","reason_code":"`...)
	b = append(b, d.ReasonCode...)
	b = append(b, `","rule_id":`...)
	b = quote(b, d.RuleID)
	b = append(b, `,"digest":"`...)
	b = append(b, d.Digest...)
	return append(b, `"}`...)
}

// folded reports whether the caller's event carries the decision.
func (d *GateDecision) folded() bool {
	return d.Decision == Approve && d.DecidedBy == byPolicy && (d.Gate == GateStart || d.Gate == GateResult || d.Gate == GateCAD)
}

// Commit records the verdict, and opens an approval for a hitl, inside the
// caller's transaction. It fails with ErrStale when the rules changed or an
// always rule ran out since Evaluate: evaluate again. See GateDecision.Audit
// for the audit event.
func (j *Judge) Commit(tx *audit.Tx, ask Ask, v Verdict) (GateDecision, *Approval, error) {
	if err := j.checkVerdict(tx, &ask, &v); err != nil {
		return GateDecision{}, nil, err
	}
	if ask.TaskID == "" || v.ask.task != ask.TaskID || v.ask.tenant != tx.Tenant() { // no digest of Evaluate's
		v.Digest = finish(v.ask.prefix, ask.TaskID, tx.Tenant())
	}
	d := GateDecision{
		TenantID: tx.Tenant(), TraceID: ask.TraceID, TaskID: ask.TaskID,
		Decision: v.Decision, ReasonCode: v.ReasonCode, Confidence: v.Confidence,
		Gate: ask.Gate, Rationale: v.Rationale, RuleID: v.RuleID,
		PolicyVersion: v.PolicyVersion, Digest: v.Digest,
		DecidedBy: byPolicy, Door: ask.By.Door,
		Agent: ask.Agent.Name, Kind: ask.Action.Kind, Session: ask.Session,
		Abort: v.Abort, Unsandboxed: v.Unsandboxed,
	}
	if d.Door == "" {
		d.Door = core.DoorEngine
	}
	if v.always != "" {
		if err := j.useRule(tx, &ask, &v); err != nil {
			return GateDecision{}, nil, err
		}
	}
	var a *Approval
	if v.Decision == HITL {
		a = j.newApproval(tx, &ask, &v)
		d.ApprovalID = a.ApprovalID
	}
	if err := j.record(tx, &d); err != nil {
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

// record appends a decision, and its audit event unless the caller has one. d
// must not be changed any more.
func (j *Judge) record(tx *audit.Tx, d *GateDecision) error {
	policy, err := j.number(tx)
	if err != nil {
		return err
	}
	row := &decisionRow{GateDecision: *d, Number: j.decisions.Next(tx), by: policy}
	if err := j.decisions.Write(tx, nil, row); err != nil {
		return fmt.Errorf("record a decision: %w", err)
	}
	d.DecisionID, d.CreatedAt = policy.id(row.Number), row.CreatedAt
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
func (j *Judge) decision(tx store.Tx, row *decisionRow) (GateDecision, error) {
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
	a, d := r.by, &r.GateDecision
	b = append(b, `{"n":`...)
	b = strconv.AppendUint(b, r.Number, 10)
	b = append(b, `,"decision":"`...)
	b = append(b, d.Decision...)
	b = append(b, `","reason_code":"`...)
	b = append(b, d.ReasonCode...)
	b = append(b, `","gate":"`...)
	b = append(b, d.Gate...)
	b = append(b, `","created_at":"`...)
	b = d.CreatedAt.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","digest":"`...)
	b = append(b, d.Digest...)
	b = append(b, `","trace_id":`...)
	b = quote(b, d.TraceID)
	b = append(b, `,"policy":`...)
	b = strconv.AppendUint(b, a.number, 10)
	b = field(b, "task_id", d.TaskID)
	b = field(b, "kind", d.Kind)
	b = field(b, "rule_id", d.RuleID)
	b = field(b, "agent", d.Agent)
	b = field(b, "session_id", d.Session)
	b = field(b, "door", string(d.Door))
	if d.DecidedBy != byPolicy {
		b = field(b, "decided_by", d.DecidedBy)
	}
	b = field(b, "proof", d.Proof)
	b = field(b, "seat", d.Seat)
	b = field(b, "key", d.Key)
	b = field(b, "content_sha256", d.ContentSHA256)
	current := d.PolicyVersion == a.ruling.version
	if !current {
		b = field(b, "policy_version", d.PolicyVersion)
	}
	if r := a.ruling.table.byID[d.RuleID]; !current || a.ruling.program != nil || r == nil || r.Rationale != d.Rationale {
		b = append(b, `,"rationale":`...)
		b = quote(b, d.Rationale)
	}
	b = field(b, "prior_digest", d.PriorDigest)
	b = field(b, "approval_id", d.ApprovalID)
	if d.Confidence != nil {
		b = append(b, `,"confidence":`...)
		b = strconv.AppendFloat(b, *d.Confidence, 'g', -1, 64)
	}
	if d.Signature != nil {
		b = append(append(b, `,"signature":`...), core.MustEncode(d.Signature)...)
	}
	if !d.ShownAt.IsZero() {
		b = field(b, "shown_at", d.ShownAt.Format(time.RFC3339Nano))
	}
	if d.SelfApproved {
		b = append(b, `,"self_approved":true`...)
	}
	if d.Abort {
		b = append(b, `,"abort":true`...)
	}
	if d.Unsandboxed {
		b = append(b, `,"unsandboxed":true`...)
	}
	return append(b, '}')
}

func field(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return quote(b, value)
}
