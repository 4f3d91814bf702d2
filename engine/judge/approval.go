package judge

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// ApprovalStatus says where an approval stands. Only open ones can be answered.
type ApprovalStatus string

const (
	Open     ApprovalStatus = "open"
	Approved ApprovalStatus = "approved"
	Refused  ApprovalStatus = "denied"
	Expired  ApprovalStatus = "expired" // the deadline denied
	Voided   ApprovalStatus = "void"    // what it was about changed or is gone
)

// Approval is one question that waits for a person (requirement 2.4).
type Approval struct {
	TenantID      string         `json:"tenant_id"`
	TraceID       string         `json:"trace_id"`
	TaskID        string         `json:"task_id"`
	ApprovalID    string         `json:"approval_id"`
	Status        ApprovalStatus `json:"status"`
	Gate          Gate           `json:"gate"`
	Action        Action         `json:"action"`
	Agent         AgentRef       `json:"agent,omitzero"`
	Contained     Containment    `json:"contained,omitzero"`
	During        []During       `json:"during,omitempty"` // at GateNet: what the connection may be part of
	Session       string         `json:"session_id,omitempty"`
	Attempt       int            `json:"attempt"`
	Subject       Subject        `json:"subject"`
	Intent        string         `json:"intent"`
	Said          bool           `json:"intent_given,omitzero"` // the intent is in the words of who asks
	Fixed         bool           `json:"fixed,omitzero"`        // edited arguments can't be handed over: they are denied, and said instead
	Risk          Risk           `json:"risk"`
	ReasonCode    string         `json:"reason_code"`
	Rationale     string         `json:"rationale,omitempty"`
	RuleID        string         `json:"rule_id,omitempty"`
	PolicyVersion string         `json:"policy_version"`
	Confidence    *float64       `json:"confidence,omitempty"`
	Digest        string         `json:"digest"`
	PriorDigest   string         `json:"prior_digest,omitempty"` // before an edit
	RequestedBy   string         `json:"requested_by"`
	RequestedKind core.ActorKind `json:"requested_kind"`
	CreatedAt     time.Time      `json:"created_at"`
	DeadlineAt    time.Time      `json:"deadline_at,omitzero"` // none: it waits without end
	AtDeadline    string         `json:"at_deadline,omitzero"` // "deny"
	StartBy       time.Time      `json:"start_by,omitzero"`    // its task times out then, which voids it
	DeferredUntil time.Time      `json:"deferred_until,omitzero"`
	Approvers     []string       `json:"approvers,omitempty"`    // operators and groups of whom one has to answer; none is anyone whose role allows it
	Quorum        int            `json:"quorum,omitzero"`        // persons who must approve, by its rule; see Needed
	Consents      []Consent      `json:"approved_by,omitempty"`  // of those who approved while others are still needed
	EscalateAt    time.Time      `json:"escalate_at,omitzero"`   // when it is handed on, or told of again
	EscalateTo    string         `json:"escalate_to,omitempty"`  // to whom then
	EscalatedTo   string         `json:"escalated_to,omitempty"` // the operator or group that alone may answer since
	EscalatedAt   time.Time      `json:"escalated_at,omitzero"`
	ShownAt       time.Time      `json:"shown_at,omitzero"`
	Inquiries     []Inquiry      `json:"inquiries,omitempty"` // what was asked about it, and said to that
	AnsweredBy    string         `json:"answered_by,omitempty"`
	AnsweredAt    time.Time      `json:"answered_at,omitzero"`
	AnswerReason  string         `json:"answer_reason,omitempty"`
	Content       core.Raw       `json:"content,omitempty"` // what a question was answered with
	Abort         bool           `json:"abort,omitzero"`
	SelfApproved  bool           `json:"self_approved,omitzero"`
	VoidReason    string         `json:"void_reason,omitempty"`
	VoidedAt      time.Time      `json:"voided_at,omitzero"`
	DecisionID    string         `json:"decision_id,omitempty"` // the newest decision about it
	// UsedAt is when the approved effect started; an approval is used once.
	UsedAt time.Time `json:"used_at,omitzero"`

	// Who asked and who answered are to their doors, under whatever name; "" when that is
	// not known. AnsweredFor is whom who answered stood in for, "" for nobody.
	RequestedPerson string `json:"requested_person,omitempty"`
	// RequestedDoor is by which door, where the rules know it.
	RequestedDoor  core.Door `json:"requested_door,omitempty"`
	AnsweredFor    string    `json:"answered_for,omitempty"`
	AnsweredPerson string    `json:"answered_person,omitempty"`

	Unsandboxed bool `json:"unsandboxed,omitzero"` // the program that asked ran without a jail

	Driver   string `json:"driver,omitempty"`
	Priority int    `json:"priority,omitzero"`
	AuditSeq uint64 `json:"audit_seq,omitzero"` // its newest audit event

	Card
}

// Bounds of what an approval keeps of an ask.
const (
	maxIntent = 1024
	maxReason = 4096
)

// approvals are what waits for a person's answer, and what waited.
type approvals struct {
	ledger    ledger
	policies  *policies
	standing  *standing
	decisions *decisions

	kind      record.Table[Approval]
	live      record.Mirror[Approval] // those that are open
	deadlines map[Risk]time.Duration
	waits     waits
	ring      func(tenant string) // of who ends them
	tasks     Tasks
	health    *health.Troubles
}

// newApproval is the approval that a hitl verdict asks for, with its id.
func (j *approvals) newApproval(tx *audit.Tx, ask *Ask, v *Verdict) *Approval {
	a := &Approval{
		TenantID: tx.Tenant(), TraceID: ask.TraceID, TaskID: ask.TaskID,
		ApprovalID: core.NewID(core.ApprovalPrefix, tx.Tenant(), j.kind.Next(tx)), Status: Open,
		Gate: ask.Gate, Action: ask.Action, Agent: ask.Agent, Contained: ask.Contained, During: ask.During, Session: ask.Session, Attempt: ask.Attempt,
		Intent: core.ClipTo(ask.Intent, maxIntent), Said: ask.Said, Fixed: ask.Fixed, Risk: v.Risk,
		ReasonCode: v.ReasonCode, Rationale: v.Rationale, RuleID: v.RuleID, PolicyVersion: v.PolicyVersion,
		Confidence: v.Confidence, Digest: v.Digest,
		RequestedBy: ask.By.Name, RequestedKind: ask.By.Kind, RequestedPerson: ask.By.Person, RequestedDoor: ask.By.Door,
		CreatedAt: tx.Now(),
		StartBy:   ask.StartBy, Unsandboxed: v.Unsandboxed, Driver: ask.Driver, Priority: ask.Priority,
	}
	a.Action.Args = append(core.Raw(nil), ask.Action.Args...)
	if len(a.Action.Args) == 0 {
		a.Action.Args = core.Raw("{}")
	}
	usual := j.deadlines[v.Risk]
	if a.lasts(v.doubt) {
		usual = 0
	}
	a.route(v.route, usual)
	a.Subject = j.policies.Subject(a.TenantID, a.Gate, &a.Action, &a.Agent)
	return a
}

// Ends says when an open approval ends by itself, and how: "deny" at its
// deadline, or "void" when its task must have started before that, or its connection waits
// no longer. Zero is never.
func (a *Approval) Ends() (at time.Time, how string) {
	if !a.StartBy.IsZero() && (a.DeadlineAt.IsZero() || a.StartBy.Before(a.DeadlineAt)) {
		if a.Gate == GateNet {
			return a.StartBy, "void: the connection is given up"
		}
		return a.StartBy, "void: its task times out"
	}
	return a.DeadlineAt, a.AtDeadline
}

// open stores a new approval and tells everyone. Its arguments are written as the
// store will have them: what is shown of it is the same before and after a restart.
func (j *approvals) open(tx *audit.Tx, a *Approval) error {
	args, err := core.Encode(a.Action.Args)
	if err != nil {
		return fmt.Errorf("encode the arguments of approval %s: %w", a.ApprovalID, err)
	}
	a.Action.Args = args
	return j.save(tx, a, "approval.opened", map[string]any{
		"gate": a.Gate, "risk": a.Risk, "reason_code": a.ReasonCode, "rule_id": a.RuleID, "digest": a.Digest,
		"task_id": a.TaskID, "agent": a.Agent.Name, "deadline_at": a.DeadlineAt, "decision_id": a.DecisionID,
	})
}

// save writes an approval with its audit event and keeps the open ones' small
// bucket in step.
func (j *approvals) save(tx *audit.Tx, a *Approval, event string, detail any) error {
	err := j.kind.Keep(tx, record.Event{Type: event, Trace: a.TraceID, Detail: detail}, a)
	if at := keyOf(a.ApprovalID); err == nil && a.Status == Open {
		err = approvalOpen.Put(tx, at, uint64(a.due().UnixMicro()))
	} else if err == nil {
		err = approvalOpen.Delete(tx, at)
	}
	if err != nil {
		return fmt.Errorf("save approval %s: %w", a.ApprovalID, err)
	}
	tenant := tx.Tenant()
	tx.OnCommit(func() { j.ring(tenant) })
	return nil
}

func decodeApproval(value []byte) (*Approval, error) {
	a := &Approval{}
	if err := core.DecodeStored(value, a); err != nil {
		return nil, err
	}
	// The value belongs to the transaction.
	a.Action.Args = append(core.Raw(nil), a.Action.Args...)
	a.Content = append(core.Raw(nil), a.Content...)
	return a, nil
}

// due is when Run has to look at an open approval next.
func (a *Approval) due() time.Time {
	due := never
	for _, at := range []time.Time{a.DeadlineAt, a.escalates(), a.DeferredUntil} {
		if !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// never is when nothing is due.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// escalates is when it is handed on, or told of again; zero is not, or has been.
func (a *Approval) escalates() time.Time {
	if !a.EscalatedAt.IsZero() {
		return time.Time{}
	}
	return a.EscalateAt
}

// passed reports whether a time was given, and is over.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// shape hashes what makes two approvals alike: gate, kind, program and agent.
func (a *Approval) shape() string {
	h := fnv.New64a()
	for _, part := range []string{string(a.Gate), a.Action.Kind, a.Action.Server, program(&a.Action), a.Agent.Name} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ask is the question that an approval came from, for a new evaluation.
func (a *Approval) ask() Ask {
	return Ask{
		Gate: a.Gate, TraceID: a.TraceID, TaskID: a.TaskID, Session: a.Session, Attempt: a.Attempt,
		Priority: a.Priority, Action: a.Action, Agent: a.Agent, Contained: a.Contained, Driver: a.Driver, Intent: a.Intent, Said: a.Said,
		By:         core.Caller{Tenant: a.TenantID, Name: a.RequestedBy, Kind: a.RequestedKind, Person: a.RequestedPerson, Door: cmp.Or(a.RequestedDoor, core.DoorEngine)},
		Confidence: a.Confidence,
	}
}

// decision is a GateDecision about an approval, still without id and time.
func (a *Approval) decision(by core.Caller, d Decision, reason string) GateDecision {
	ask := a.ask()
	out := ask.decision(a.TenantID, d, reason)
	out.RuleID, out.PolicyVersion, out.Digest, out.PriorDigest, out.ApprovalID = a.RuleID, a.PolicyVersion, a.Digest, a.PriorDigest, a.ApprovalID
	out.DecidedBy, out.Proof, out.Door, out.Seat, out.ShownAt = by.Name, by.Proof, by.Door, by.Seat, a.ShownAt
	return out
}

// Start checks, when an approved effect is about to start, that the approval
// still stands for exactly this ask under the rules now active, and marks it
// used: an approval is used once. A mismatch voids it and reports false: ask
// anew (requirement 2.4). So does an approval that is not approved, or was used before,
// without changing it.
func (j *approvals) Start(tx *audit.Tx, approvalID string, ask Ask) (bool, error) {
	a, err := j.kind.Need(tx, approvalID)
	if err != nil {
		return false, err
	}
	if a.Status != Approved || !a.UsedAt.IsZero() {
		return false, nil
	}
	why := ""
	digest, err := Digest(tx.Tenant(), a.PolicyVersion, ask)
	switch {
	case err != nil:
		why = "the arguments can't be bound: " + err.Error()
	case digest != a.Digest:
		why = "what would start is not what was approved"
		if changed := changedFile(a.Action.Files, ask.Action.Files); changed != "" {
			why = changed + " is not what was approved"
		}
	case a.PolicyVersion != j.policies.rulingIn(tx).version:
		why = "the policy changed since it was approved"
	}
	if why != "" {
		return false, j.void(tx, a, why, map[string]any{"reason": why, "digest": a.Digest, "found_digest": digest})
	}
	a.UsedAt = tx.Now()
	if err := j.save(tx, a, "approval.used", map[string]any{"digest": digest, "task_id": a.TaskID}); err != nil {
		return false, err
	}
	return true, nil
}

// StandsStill reports whether an approval holds for the same effect once more after its
// engine died: nobody used it, or what did so had not begun, which undone says. It may be
// used then as if it had not been.
func (j *approvals) StandsStill(tx *audit.Tx, approvalID string, undone bool) (bool, error) {
	if approvalID == "" {
		return false, nil
	}
	a, err := j.kind.Need(tx, approvalID)
	if err != nil || a.Status != Approved || !a.UsedAt.IsZero() && !undone {
		return false, err
	}
	if a.UsedAt.IsZero() {
		return true, nil
	}
	a.UsedAt = time.Time{}
	return true, j.save(tx, a, "approval.resumed", map[string]any{"task_id": a.TaskID})
}

// Void closes the open approvals that match: their task was cancelled, their
// session stopped, their agent died. They can't be answered any more. It reads
// every open approval of the tenant, so call it only for what has one. It does
// not call the gate's owner: the caller is about to settle that itself.
func (j *approvals) Void(tx *audit.Tx, match func(*Approval) bool, reason string) error {
	open, err := j.openIn(tx)
	if err != nil {
		return err
	}
	for _, a := range open {
		if match(a) {
			if err := j.void(tx, a, reason, map[string]any{"reason_sha256": core.SHA256(reason), "digest": a.Digest}); err != nil {
				return err
			}
		}
	}
	return nil
}

// VoidTask is Void for the approvals of one task alone, and reads no others.
func (j *approvals) VoidTask(tx *audit.Tx, task string, match func(*Approval) bool, reason string) error {
	var open []*Approval
	err := j.kind.Along(tx, approvalTask, task, func(a *Approval) error {
		if match(a) {
			open = append(open, a)
		}
		return nil
	})
	if len(core.DamagedIn(err)) > 0 { // nobody can answer it, and it holds no other up
		j.health.Report(tx.Tenant(), "judge", "", err)
	} else if err != nil {
		return fmt.Errorf("list the open approvals of task %s: %w", task, err)
	}
	for _, a := range open {
		if err := j.void(tx, a, reason, map[string]any{"reason_sha256": core.SHA256(reason), "digest": a.Digest}); err != nil {
			return err
		}
	}
	return nil
}

func (j *approvals) void(tx *audit.Tx, a *Approval, reason string, detail any) error {
	a.Status, a.VoidedAt, a.VoidReason = Voided, tx.Now(), core.ClipTo(reason, maxReason)
	a.DeferredUntil = time.Time{}
	tenant, id := tx.Tenant(), a.ApprovalID
	tx.OnCommit(func() {
		if w := j.waits.take(tenant, id); w != nil {
			close(w.void)
		}
	})
	return j.save(tx, a, "approval.voided", detail)
}

// openIn reads the open approvals, oldest first. Those that can't be read are
// told of and left out.
func (j *approvals) openIn(tx *audit.Tx) ([]*Approval, error) {
	open, err := openNumbers(tx)
	if err != nil {
		return nil, fmt.Errorf("list the open approvals: %w", err)
	}
	out := make([]*Approval, 0, len(open))
	for _, n := range open {
		a, err := j.kind.At(tx, record.Seq(n))
		if err == nil && a == nil {
			err = errors.New("it is open, and has no record")
		}
		if err != nil { // nobody can answer it, and it holds no other up
			j.health.Report(tx.Tenant(), "judge", "approval "+core.NewID(core.ApprovalPrefix, tx.Tenant(), n), err)
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

// openNumbers are those of the open approvals, oldest first.
func openNumbers(tx store.Tx) (all []uint64, err error) {
	all = []uint64{}
	err = approvalOpen.Each(tx, nil, func(k record.Parts, _ uint64) (bool, error) {
		all = append(all, k.Seq())
		return true, nil
	})
	return all, err
}
