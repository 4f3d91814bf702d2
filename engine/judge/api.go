// Package judge stands before every effect. It answers approve, deny or hitl
// (ask a person) from an ordered rule table, opens an approval for each hitl,
// and lets an operator answer it exactly once. Without a judge's recorded
// answer nothing happens.
package judge

import (
	"cmp"
	"hash"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// Decision is the model's enum.
type Decision string

const (
	Approve Decision = "approve"
	Deny    Decision = "deny"
	HITL    Decision = "hitl"
)

// Gate is the place an ask comes from.
type Gate string

const (
	GateStart  Gate = "task.start"    // before a task is queued
	GateTool   Gate = "tool.call"     // an agent's tool call, mid-run
	GateSkill  Gate = "skill.step"    // a step of a skill's run that does more than read
	GateResult Gate = "result"        // before a result is committed
	GateBudget Gate = "budget"        // a budget is used up
	GateAgent  Gate = "agent.delete"  // deleting an agent
	GateCAD    Gate = "cad.operation" // an operation of a CAD agent
	GateIntent Gate = "dag.intent"    // what an agent wants done to resources, forks or processes, where that destroys
	GateNet    Gate = "net.connect"   // the first contact of a run with a host that no egress rule names
	GateGrant  Gate = "grant"         // a Grant; no rule is about it: what it would let pass is judged

	GateQuestion Gate = "question" // a Question; no rule answers it: a person does
)

// Kinds of actions that rules look into.
const (
	KindExec     = "exec.run"      // a local command
	KindSkill    = "skill.invoke"  // a skill with what it depends on
	KindMCP      = "mcp.call"      // a tool of a server; its arguments lie in args
	KindCAD      = "cad.operation" // an operation of a CAD agent
	KindIntent   = "intent"        // what an agent wants of the controller
	KindNet      = "net.connect"   // a connection to a host; its tool is HOST:PORT
	KindTool     = "tool"          // a tool that an agent calls
	KindGrant    = "grant"         // a Grant, which its arguments hold
	KindQuestion = "question"      // a Question, which its arguments hold
)

// Risk grades what could go wrong.
type Risk string

// The risks, lowest first.
const (
	Low      Risk = "low"
	Medium   Risk = "medium"
	High     Risk = "high"
	Critical Risk = "critical"
)

// Action is what will be done, with the final arguments.
type Action struct {
	Kind   string   `json:"kind"`             // task kind, or "tool"; KindSkill at GateSkill, KindCAD at GateCAD, KindIntent at GateIntent, KindNet at GateNet, KindGrant at GateGrant, KindQuestion at GateQuestion
	Server string   `json:"server,omitempty"` // MCP server or runtime
	Tool   string   `json:"tool,omitempty"`
	CallID string   `json:"call_id,omitempty"`
	Args   core.Raw `json:"args"` // JSON object
	// Effects are what the action does by declaration: of skills and of
	// CAD operations, whose Args bind them. Whoever asks vouches for them.
	Effects []string `json:"effects,omitempty"`
	// Files are those of the work directory that the action names, as whoever
	// asks found them. An approval is bound to them.
	Files []File `json:"files,omitempty"`
}

// AgentRef is the agent that would act; empty for a plain task.
type AgentRef struct {
	Name    string `json:"name,omitempty"`
	Role    string `json:"role,omitempty"`
	Project string `json:"project,omitempty"`
	Profile string `json:"profile,omitempty"` // how much of the machine its processes reach; "" where nobody knows
}

// Ask is one question to the judge.
type Ask struct {
	Gate      Gate
	TraceID   string
	TaskID    string
	Session   string
	Attempt   int
	Priority  int
	Action    Action
	Agent     AgentRef
	Contained Containment
	During    []During // at GateNet
	Driver    string   // "exec", "acp", …
	Intent    string   // one line about it; hostile when an agent gave it
	Said      bool     // Intent is in the words of who asks, not the engine's
	Fixed     bool     // edited arguments can't be handed to who asks
	Risk      Risk     // claimed by who asks; rules may raise it
	By        core.Caller
	StartBy   time.Time // when a waiting approval is voided: its task must have started by then; zero is never
	// Result gate only.
	Confidence *float64 // claimed confidence of the result
	Text       string   // the output's text, for sensitive topics
	LastTry    bool
}

// Verdict is the judge's answer, not yet recorded.
type Verdict struct {
	Decision      Decision
	ReasonCode    string // ^[a-z0-9_.]+$
	Rationale     string
	Confidence    *float64
	RuleID        string
	PolicyVersion string // digest of the active rules
	Digest        string // what an approval is bound to (requirement 2.4)
	Risk          Risk
	Retry         bool // result gate: reject and retry with feedback
	Abort         bool // with a deny: the run is to end
	Unsandboxed   bool // a program said so, and ran without a jail

	route   *Route // of the rule that asks; nil has none
	doubt   bool   // what it is about was begun before, and cut off
	program bool   // a program answered
	stderr  string // and what it said beside

	ask    evaluated // what was evaluated, for Commit
	always string    // id of the always rule that approved
	asks   string    // the rule of the policy that it stands in for
}

// Asking is the rule of the policy that leaves it to a person, also where an always rule
// answers for one; "" for none.
func (v *Verdict) Asking() string {
	if v.always != "" {
		return v.asks
	}
	return v.RuleID
}

// Refused is the error of arguments that can't be bound to a digest, the one
// that CheckArgs has for them; nil for all others.
func (v *Verdict) Refused() error { return v.ask.refused }

// evaluated is what Evaluate prepares for Commit, so that the work inside the
// transaction stays small.
type evaluated struct {
	args    core.Raw
	attempt int
	prefix  hash.Hash // over the digest's document up to the task
	refused error     // the arguments have no canonical form
	task    string    // what a digest that was made was made for, "" for none
	tenant  string
}

// GateDecision is the model's record, with who, when and why beside it.
type GateDecision struct {
	TenantID   string    `json:"tenant_id"`
	TraceID    string    `json:"trace_id"`
	TaskID     string    `json:"task_id"`
	Decision   Decision  `json:"decision"`
	ReasonCode string    `json:"reason_code"`
	Confidence *float64  `json:"confidence,omitempty"`
	CreatedAt  time.Time `json:"created_at"`

	DecisionID    string     `json:"decision_id"`
	Gate          Gate       `json:"gate"`
	Rationale     string     `json:"rationale,omitempty"`
	RuleID        string     `json:"rule_id,omitempty"`
	PolicyVersion string     `json:"policy_version"`
	Digest        string     `json:"digest"`
	PriorDigest   string     `json:"prior_digest,omitempty"` // digest before an edit
	ApprovalID    string     `json:"approval_id,omitempty"`
	DecidedBy     string     `json:"decided_by"`      // operator, or "policy"
	Proof         string     `json:"proof,omitempty"` // by which the door knew who decided: uid:N, or the fingerprint of a key
	Door          core.Door  `json:"door"`
	Seat          string     `json:"seat,omitempty"`      // where who decided sat
	Key           string     `json:"key,omitempty"`       // that was pressed for it in a cockpit
	Signature     *Signature `json:"signature,omitempty"` // of a person's answer
	ShownAt       time.Time  `json:"shown_at,omitzero"`
	SelfApproved  bool       `json:"self_approved,omitzero"`
	Abort         bool       `json:"abort,omitzero"`
	Unsandboxed   bool       `json:"unsandboxed,omitzero"` // by a program without a jail
	Agent         string     `json:"agent,omitempty"`
	Kind          string     `json:"kind,omitempty"`
	Session       string     `json:"session_id,omitempty"`
	ContentSHA256 string     `json:"content_sha256,omitempty"` // of what a question was answered with
}

// Word is the decision with abort told apart from deny, as a program gives it.
func (d *GateDecision) Word() string {
	if d.Abort {
		return replyAbort
	}
	return string(d.Decision)
}

// Decider names what decided, for a sentence: a rule, the policy, a person.
func (d *GateDecision) Decider() string {
	switch {
	case d.RuleID != "":
		return "rule " + d.RuleID
	case d.DecidedBy == byPolicy:
		return "the policy"
	}
	return d.DecidedBy
}

// byPolicy is DecidedBy where no person decided.
const byPolicy = "policy"

// Answer is what an operator says to an approval.
type Answer struct {
	Approve bool
	Reason  string    // required for a deny and for a high-risk approve
	Abort   bool      // deny and end the task as blocked
	Edit    core.Raw  // new arguments; validated and judged again
	Content core.Raw  // what a question is answered with, an object; at GateQuestion alone
	ShownAt time.Time // when the card was drawn; zero from a script
	Always  *Always   // also make a rule
	Digest  string    // when set, must equal the approval's: what the operator saw
	Edited  string    // when set, must equal the digest of what an edit makes of it
	Key     string    // that was pressed for it in a cockpit, at most 16 bytes

	Signature []byte     // SSHSIG of the Statement, armored; nil for none
	SignedAt  time.Time  // the time in the statement, to the second
	signature *Signature // that was verified
}

// Always asks for a rule that approves the same from now on. What it covers is what its
// line says (Rule.String), which Offer tells before it is given.
type Always struct {
	For     string        // ForAgent, ForRun, ForSession, ForProject, ForAnyone: those of the approval
	Any     []string      // places of the arguments that may hold anything; none means exactly these
	Expires time.Duration // required, at most 30 days
	MaxUses int           // required, 1-1000
	Digest  string        // when set, must be that of the rule: what the operator saw
}

// Rule is one "always" rule: an answer made it, or a Grant that was approved.
type Rule struct {
	TenantID  string    `json:"tenant_id"`
	RuleID    string    `json:"rule_id"`
	Line      string    `json:"rule,omitempty"` // String; not kept, since arguments may be erased
	Digest    string    `json:"digest"`         // of what was offered, line and all; one without is of an older form
	Gate      Gate      `json:"gate"`
	Action    Action    `json:"action"`
	Any       []string  `json:"any,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Project   string    `json:"project,omitempty"`
	Session   string    `json:"session_id,omitempty"`
	Run       string    `json:"run,omitempty"` // task id and attempt
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	MaxUses   int       `json:"max_uses"`
	Uses      int       `json:"uses"`
	Revoked   bool      `json:"revoked,omitzero"`
	Backtest  Backtest  `json:"backtest"`

	Risk       Risk   `json:"risk"` // of the ask it came from; a riskier one asks a person
	ApprovalID string `json:"approval_id"`
	AuditSeq   uint64 `json:"audit_seq,omitzero"`
}

// Backtest says what a rule would have changed in the recorded history.
type Backtest struct {
	Checked int `json:"checked"`
	Flips   int `json:"flips"`
}

// Outcome tells the gate's owner how an approval ended.
type Outcome struct {
	Approved bool
	Abort    bool
	Args     core.Raw // the arguments to run: the edited ones after an edit
	Content  core.Raw // at GateQuestion, what was answered
	Files    []File   // of a Request: those that it is bound to
	Reason   string
	By       string
	Decision GateDecision
}

// Settler is the owner of a gate: it applies an approval's end to its own
// records, in the same transaction (release or block a task, and so on).
type Settler interface {
	Settle(tx *audit.Tx, a Approval, out Outcome) error
}

// Editor is a Settler whose actions can be edited. It checks edited arguments before
// they are judged again, and returns the final ones, with defaults, exactly as they
// will run: the approval is bound to them.
type Editor interface {
	Validate(a Approval, args core.Raw) (core.Raw, error)
}

var risks = map[Risk]int{Low: 1, Medium: 2, High: 3, Critical: 4}

func (r Risk) valid() bool { return risks[r] > 0 }

// above reports whether r is graver than other.
func (r Risk) above(other Risk) bool { return risks[r] > risks[other] }

// claimed is the risk that an ask claims: none means low, and one that is no
// risk at all counts as high.
func claimed(r Risk) Risk {
	switch {
	case r == "":
		return Low
	case !r.valid():
		return High
	}
	return r
}

func graver(a, b Risk) Risk {
	if b.above(a) {
		return b
	}
	return a
}

// AtLeast reports whether r is as grave as other, or graver.
func (r Risk) AtLeast(other Risk) bool { return risks[r] >= risks[other] }

// During is what was under way when something was asked that no call names: an
// agent at work, or a tool call of its, as it tells of it. It is for people: no
// approval is bound to it and no rule sees it.
type During struct {
	Agent  string `json:"agent,omitempty"`   // where several share the process
	TaskID string `json:"task_id,omitempty"` // where several are at work
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Title  string `json:"title,omitempty"`
}

// String is one line: who and on what, where that is to be said, and the call.
func (d During) String() string {
	id := d.CallID
	if id != "" {
		id = "(" + id + ")"
	}
	call := cmp.Or(joined(" ", d.Tool, d.Title, id), "tells of no call")
	return joined(": ", joined(", ", d.Agent, d.TaskID), call)
}

// joined are the parts that there are.
func joined(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
}
