package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge/signature"
)

// SignNamespace is that of the signatures of answers.
const SignNamespace = signature.Namespace

// Sign is which answers need a signature.
type Sign string

// The classes; each needs what those before it do.
const (
	SignOff      Sign = "off"
	SignCritical Sign = "critical"
	SignHigh     Sign = "high" // and critical
	SignAll      Sign = "all"
)

// Signs lists them, the mildest first.
func Signs() []Sign { return []Sign{SignOff, SignCritical, SignHigh, SignAll} }

// needs says whether an answer at that risk has to be signed.
func (s Sign) needs(r Risk) bool {
	return s == SignAll || s == SignHigh && r.above(Medium) || s == SignCritical && r == Critical
}

// Statement is what a signature of an answer is about, all of it.
type Statement struct {
	Type     string    `json:"type"` // statementType
	Log      string    `json:"log"`  // origin of the tenant's audit log
	TenantID string    `json:"tenant_id"`
	Approval string    `json:"approval_id"`
	Digest   string    `json:"digest"` // of what is answered; of an edit, of what it becomes
	Answer   string    `json:"answer"` // approve, deny or abort
	Reason   string    `json:"reason"`
	Content  string    `json:"content_sha256,omitempty"` // of what a question is answered with
	Always   *Always   `json:"always,omitempty"`
	Operator string    `json:"operator"`
	At       time.Time `json:"time"`
}

const statementType = "swarmdeck.answer/1"

// MarshalJSON writes what is asked for as a statement has it: {"expires":"1h0m0s",…}.
func (w Always) MarshalJSON() ([]byte, error) {
	return core.Encode(alwaysText{w.Any, w.Digest, w.Expires.String(), w.For, w.MaxUses})
}

// UnmarshalJSON reads the same.
func (w *Always) UnmarshalJSON(text []byte) error {
	var t alwaysText
	if err := core.Decode(text, &t); err != nil {
		return err
	}
	d, err := time.ParseDuration(t.Expires)
	if err != nil {
		return core.Invalid("expires", core.Clip(t.Expires), "a duration: 1h0m0s")
	}
	*w = Always{For: t.For, Any: t.Any, Expires: d, MaxUses: t.MaxUses, Digest: t.Digest}
	return nil
}

type alwaysText struct {
	Any     []string `json:"any,omitempty"`
	Digest  string   `json:"digest"` // of the rule, which holds its line
	Expires string   `json:"expires"`
	For     string   `json:"for"`
	MaxUses int      `json:"max_uses"`
}

// of is what is asked for with the digest of the rule that an approval makes of it.
func (w *Always) of(a *Approval) *Always {
	bound := *w
	bound.Digest = a.Offer(bound).Digest
	return &bound
}

// String is the text that is signed: canonical JSON in one line.
func (s Statement) String() string {
	text, err := core.Canonical(core.MustEncode(s))
	if err != nil {
		panic(fmt.Sprintf("judge: a statement that has no canonical form: %v", err)) // its fields all have one
	}
	return string(text) + "\n"
}

// ParseStatement reads the text of a statement, and nothing but such a text.
func ParseStatement(text []byte) (Statement, error) {
	var s Statement
	if err := core.Decode(text, &s); err != nil {
		return s, core.Errorf(core.InvalidInput, "statement: %v", err).With("field", "statement")
	}
	if s.Type != statementType || s.String() != string(text) {
		return s, core.Errorf(core.InvalidInput, "statement: is not as `approval statement` printed it").With("field", "statement")
	}
	return s, nil
}

// Answered is the answer that a statement states, still without its signature.
func (s Statement) Answered() Answer {
	return Answer{Approve: s.Answer == string(Approve), Abort: s.Answer == replyAbort, Reason: s.Reason, Always: s.Always, Digest: s.Digest, SignedAt: s.At}
}

// Signature is that of an answer, with what its statement has beside the decision.
type Signature struct {
	Key     string    `json:"key"` // as in authorized_keys
	At      time.Time `json:"time"`
	Always  *Always   `json:"always,omitempty"`
	Touched bool      `json:"touched,omitzero"` // the key says that somebody touched it
	Text    string    `json:"signature"`        // SSHSIG, armored
}

// signedWithin is how far the time of a statement may be from the engine's.
const signedWithin = 10 * time.Minute

// Statement is what the caller has to sign for an answer, and whether the terms of the
// tenant want it signed. ans.SignedAt is its time; zero is now.
func (j *answers) Statement(ctx context.Context, by core.Caller, id string, ans Answer) (s Statement, needed bool, err error) {
	terms, err := j.policies.Terms(ctx, by.Tenant)
	if err != nil {
		return s, false, err
	}
	a, _, err := j.looked(ctx, by, id, &ans)
	if err != nil {
		return s, false, err
	}
	if ans.SignedAt.IsZero() {
		ans.SignedAt = j.ledger.Clock().Now()
	}
	if ans.Always != nil {
		ans.Always = ans.Always.of(&a)
	}
	return a.statement(by.Name, &ans), terms.Sign.needs(a.Risk), nil
}

// statement is what is to be signed of an answer to the approval as it is.
func (a *Approval) statement(name string, ans *Answer) Statement {
	s := Statement{
		Type: statementType, Log: audit.Origin(a.TenantID), TenantID: a.TenantID, Approval: a.ApprovalID, Digest: a.Digest,
		Answer: string(Deny), Reason: ans.Reason, Always: ans.Always, Operator: name, At: ans.SignedAt.UTC().Truncate(time.Second),
		Content: contentSHA256(ans.Content),
	}
	switch {
	case ans.Approve:
		s.Answer = string(Approve)
	case ans.Abort:
		s.Answer = replyAbort
	}
	return s
}

// signed holds an answer against the terms: what has to be signed is, by a key of who
// answers, over exactly this answer. A bad signature is refused where none is needed too.
func (j *answers) signed(tx *audit.Tx, a *Approval, ans *Answer) (*Signature, error) {
	terms, err := readTerms(tx.Tx)
	if err != nil {
		return nil, err
	}
	refuse := func(why string) error {
		return core.Errorf(core.Denied, "approval %s: %s", a.ApprovalID, why).With("field", "signature")
	}
	if len(ans.Signature) == 0 {
		if terms.Sign.needs(a.Risk) {
			return nil, refuse("an answer at " + string(a.Risk) + " risk has to be signed with your key (approval statement, ssh-keygen -Y sign)")
		}
		return nil, nil
	}
	key, err := signature.Verify([]byte(a.statement(tx.By.Name, ans).String()), ans.Signature)
	if err != nil {
		return nil, refuse("the signature is not one of this answer: " + err.Error())
	}
	whose, since := j.whose(tx.Tenant(), key.Fingerprint)
	switch now := tx.Now(); {
	case whose == "" || whose != tx.By.Name:
		return nil, refuse("the key that signed it is not one of " + tx.By.Name + "'s")
	case a.Risk == Critical && since.After(a.CreatedAt):
		return nil, refuse("at critical risk the key has to be known before it was asked; it is since " + clock(since))
	case ans.SignedAt.Before(now.Add(-signedWithin)) || ans.SignedAt.After(now.Add(signedWithin)):
		return nil, refuse("it was signed at " + clock(ans.SignedAt) + ", and now is " + clock(now) + "; sign it anew")
	}
	return &Signature{
		Key: key.Line, At: ans.SignedAt.UTC().Truncate(time.Second), Always: ans.Always, Touched: key.Touched, Text: string(ans.Signature),
	}, nil
}

// statement is what the signature of a decision is about.
func (d *GateDecision) statement() Statement {
	ans := Answer{Approve: d.Decision != Deny, Abort: d.Abort, Reason: d.Rationale, Always: d.Signature.Always, SignedAt: d.Signature.At}
	a := Approval{TenantID: d.TenantID, ApprovalID: d.ApprovalID, Digest: d.Digest}
	s := a.statement(d.DecidedBy, &ans)
	s.Content = d.ContentSHA256
	return s
}

// errErased is of a reason that was erased: its signature can't be checked any more.
var errErased = errors.New("the reason was erased, and the signature covers it")

// CheckSignature verifies the signature of a decision that has one.
func (d *GateDecision) CheckSignature() error {
	if core.IsErasedText(d.Rationale) {
		return errErased
	}
	key, err := signature.Verify([]byte(d.statement().String()), []byte(d.Signature.Text))
	if err == nil && key.Line != d.Signature.Key {
		err = errors.New("it was made with another key than it says")
	}
	return err
}

// Signatures is how many signed answers a tenant's decisions hold.
type Signatures struct {
	Checked int // and good
	Erased  int // not checked, for their reason was erased
	Bad     []string
}

// CheckSignatures verifies every signature of the tenant's decisions.
func (j *decisions) CheckSignatures(ctx context.Context, tenant string) (s Signatures, err error) {
	err = j.eachSigned(ctx, tenant, func(d *GateDecision) {
		switch err := d.CheckSignature(); {
		case err == nil:
			s.Checked++
		case errors.Is(err, errErased):
			s.Erased++
		default:
			s.Bad = append(s.Bad, fmt.Sprintf("decision %s: the signature of %s does not hold: %v", d.DecisionID, d.DecidedBy, err))
		}
	})
	return s, err
}

// eachSigned visits the decisions that are signed answers.
func (j *decisions) eachSigned(ctx context.Context, tenant string, visit func(*GateDecision)) error {
	return j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return j.kind.Each(tx, func(row *decisionRow) error {
			if row.Signature == nil {
				return nil
			}
			d, err := j.decision(tx, row)
			if err == nil {
				visit(&d)
			}
			return err
		})
	})
}

// Export is what ssh-keygen -Y verify takes to check one signed answer.
type Export struct {
	DecisionID string `json:"decision_id"`
	Statement  string `json:"statement"`
	Signature  string `json:"signature"`
	// Signers is a line of an ALLOWED SIGNERS file (ssh-keygen(1)); Principal is who it names.
	Signers   string `json:"allowed_signers"`
	Principal string `json:"principal"`
}

// Exported are the signed answers of a decision, or of all to an approval.
func (j *approvals) Exported(ctx context.Context, tenant, id string) (all []Export, err error) {
	var of []GateDecision
	if strings.HasPrefix(id, core.ApprovalPrefix+"_") {
		if _, err := j.Approval(ctx, tenant, id); err != nil {
			return nil, err
		}
		err = j.decisions.eachSigned(ctx, tenant, func(d *GateDecision) {
			if d.ApprovalID == id {
				of = append(of, *d)
			}
		})
	} else {
		var d GateDecision
		d, err = j.decisions.Decision(ctx, tenant, id)
		of = append(of, d)
	}
	if err != nil {
		return nil, err
	}
	for _, d := range of {
		if d.Signature == nil {
			continue
		}
		if err := d.CheckSignature(); err != nil {
			return nil, core.Errorf(core.Conflict, "decision %s: %v", d.DecisionID, err)
		}
		who := signature.Principal(d.DecidedBy)
		all = append(all, Export{
			DecisionID: d.DecisionID, Statement: d.statement().String(), Signature: d.Signature.Text,
			Signers: fmt.Sprintf("%s namespaces=%q %s\n", who, SignNamespace, d.Signature.Key), Principal: who,
		})
	}
	if len(all) == 0 {
		return nil, core.Errorf(core.NotFound, "%s: no answer to it is signed", id)
	}
	return all, nil
}
