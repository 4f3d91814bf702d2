package judge

import (
	"context"
	"errors"
	"fmt"
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
	return Reply{Decision: string(HITL), ReasonCode: reason, Confidence: &none, Rationale: clip(why, 512), Fault: true}
}

const (
	replyAbort   = "abort"
	maxRationale = 4096
)

var replyReason = core.Pattern(`^[a-z0-9_.]{1,64}$`)

// ParseReply reads a program's answer. Unknown and missing fields, trailing
// output and values outside their enum or range are errors.
func ParseReply(out []byte) (Reply, error) {
	var in struct {
		Decision   *string  `json:"decision"`
		ReasonCode *string  `json:"reason_code"`
		Confidence *float64 `json:"confidence"`
		Rationale  *string  `json:"rationale"`
		RuleID     *string  `json:"rule_id"`
	}
	if len(out) > MaxAnswer {
		return Reply{}, fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	if len(strings.TrimSpace(string(out))) == 0 {
		return Reply{}, errors.New("it answered nothing")
	}
	if err := core.Decode(out, &in); err != nil {
		return Reply{}, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case in.Decision == nil:
		return Reply{}, errors.New("decision: missing")
	case in.ReasonCode == nil:
		return Reply{}, errors.New("reason_code: missing")
	case in.Confidence == nil:
		return Reply{}, errors.New("confidence: missing")
	case in.Rationale == nil:
		return Reply{}, errors.New("rationale: missing")
	}
	r := Reply{Decision: *in.Decision, ReasonCode: *in.ReasonCode, Confidence: in.Confidence, Rationale: *in.Rationale}
	switch r.Decision {
	case string(Approve), string(Deny), string(HITL), replyAbort:
	default:
		return Reply{}, core.Invalid("decision", r.Decision, "approve, deny, abort, hitl")
	}
	if !replyReason().MatchString(r.ReasonCode) || strings.HasPrefix(r.ReasonCode, "policy.") {
		return Reply{}, core.Invalid("reason_code", r.ReasonCode, "1-64 of a-z 0-9 _ . that do not start with policy.")
	}
	if !(*r.Confidence >= 0 && *r.Confidence <= 1) {
		return Reply{}, core.Invalid("confidence", *r.Confidence, "0-1")
	}
	if len(r.Rationale) > maxRationale {
		return Reply{}, core.Invalid("rationale", r.Rationale, fmt.Sprintf("at most %d bytes", maxRationale))
	}
	if in.RuleID != nil {
		if !ruleName().MatchString(*in.RuleID) {
			return Reply{}, core.Invalid("rule_id", *in.RuleID, "1-64 of a-z 0-9 . _ -, starting with a letter or digit")
		}
		r.RuleID = *in.RuleID
	}
	return r, nil
}
