package judge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// BasePolicy names the embedded policy where a policy's id is asked for.
const BasePolicy = "default"

// ruleOf is what the audit log says of which policy rules.
type ruleOf struct {
	Policy string `json:"policy"` // "" is the base
}

// single compares the one value of its kind that a tenant has with what the log says.
type single[V any] struct {
	subject string
	read    func(store.Tx) (v V, told bool, err error)
}

func (s single[V]) Subject() string { return s.subject }

func (s single[V]) States(tx store.Tx, each func(string, any) error) error {
	v, told, err := s.read(tx)
	if err != nil || !told {
		return err
	}
	return each(tx.Tenant(), v)
}

func readTerms(tx store.Tx) (PolicyTerms, error) {
	t, _, err := policyTerms.Get(tx, termsKey)
	return t, err
}

// readActive is which policy rules.
func readActive(tx store.Tx) (of ruleOf, told bool, err error) {
	n, told, err := policyActive.Get(tx, activeKey)
	if n != 0 {
		of.Policy = core.NewID(core.PolicyPrefix, tx.Tenant(), n)
	}
	return of, told, err
}

// Activate lets a proposal rule from this commit on. Only a person may; its
// cases are run anew, and all must pass. Where the tenant wants two persons the
// first leaves it a proposal, with FirstBy set.
func (j *policies) Activate(ctx context.Context, by core.Caller, id string) (Policy, error) {
	return j.install(ctx, by, id, DidActivate)
}

// Restore lets a policy rule again that ruled before, on the terms of Activate.
// BasePolicy restores the embedded one.
func (j *policies) Restore(ctx context.Context, by core.Caller, id string) (Policy, error) {
	return j.install(ctx, by, id, DidRestore)
}

func (j *policies) install(ctx context.Context, by core.Caller, id, what string) (Policy, error) {
	if err := j.ledger.operator(ctx, by, "policy", id, what+" it"); err != nil {
		return Policy{}, err
	}
	of, sum, bare := j.base(), TestsSummary{}, false
	p := &Policy{TenantID: by.Tenant, PolicyID: BasePolicy, Kind: KindRules, Status: PolicyActive, Name: of.name, Version: of.version}
	isBase := id == BasePolicy && what == DidRestore
	if !isBase {
		if err := j.ledger.local(ctx, by, core.PolicyPrefix, "policy", id); err != nil {
			return Policy{}, err
		}
		made, d, err := j.compiled(ctx, by.Tenant, id)
		if err != nil {
			return Policy{}, err
		}
		if d.Cases == 0 {
			return Policy{}, core.Errorf(core.Conflict, "policy %s: it has no cases; propose it with some", id).With("field", "tests")
		}
		of = made
		defer j.rest(by.Tenant, of)
		var results []CaseResult
		if results, sum, bare, err = j.runCases(ctx, by.Tenant, of, []byte(d.CaseSet)); err != nil {
			return Policy{}, err
		}
		if sum.Failed > 0 {
			return Policy{}, failedCases(id, sum, results)
		}
	}
	err := j.ledger.change(ctx, by, what+" policy "+id, func(tx *audit.Tx) error {
		if !isBase {
			var err error
			if p, err = j.kind.Need(tx, id); err != nil {
				return err
			}
			if done, err := mayInstall(p, what); done || err != nil {
				return err
			}
			p.TestsSummary, p.TestedAt, p.TestedVersion, p.Version, p.Unsandboxed = &sum, tx.Now(), of.version, of.version, bare
		}
		terms, err := readTerms(tx.Tx)
		if err != nil {
			return err
		}
		if terms.Jailed && bare {
			return core.Errorf(core.Denied, "policy %s: it can't be jailed here, and the tenant wants that", id)
		}
		if terms.TwoPersons && isBase {
			return core.Errorf(core.Denied, "policy default: under two persons, propose and activate a policy instead")
		}
		if terms.TwoPersons && (p.FirstBy == "" || by.Is(p.FirstBy, p.FirstPerson)) {
			p.FirstBy, p.FirstPerson = by.Name, by.Person
			if err := j.savePolicy(tx, p, "policy.first", map[string]any{"by": by.Name, "for": what}); err != nil {
				return err
			}
			return j.tell(tx, p, PolicyStep{Did: what, Result: map[string]any{"first_activated_by": by.Name, "tests_summary": sum}})
		}
		return j.rule(tx, p, of, what)
	})
	if err != nil {
		return Policy{}, err
	}
	return *p, nil
}

func failedCases(id string, sum TestsSummary, results []CaseResult) error {
	for _, r := range results {
		if !r.Passed {
			want := strings.TrimSpace(r.Want.Decision + " " + r.Want.ReasonCode)
			return core.Errorf(core.Conflict, "policy %s: %d of %d cases fail, first %q (line %d): want %s, got %s %s", id, sum.Failed, sum.Total,
				r.Name, r.Line, want, r.Decision, r.ReasonCode).With("tests_summary", sum).With("field", "tests").With(detailIn, inTests).With(detailLine, r.Line)
		}
	}
	return nil
}

// mayInstall reports what is done already, and what can't be.
func mayInstall(p *Policy, what string) (done bool, err error) {
	switch {
	case p.Status == PolicyActive:
		return true, nil
	case p.Status == PolicyWithdrawn:
		return false, core.Errorf(core.Conflict, "policy %s: it was withdrawn by %s; propose it again", p.PolicyID, p.WithdrawnBy).With("status", p.Status)
	case what == DidRestore && p.Status == PolicyProposed:
		return false, core.Errorf(core.Conflict, "policy %s: it never ruled; activate it", p.PolicyID).With("status", p.Status)
	case what == DidActivate && p.Status == PolicyRetired:
		return false, core.Errorf(core.Conflict, "policy %s: it ruled before; restore it", p.PolicyID).With("status", p.Status)
	}
	return false, nil
}

// rule makes a policy the active one and retires the one before.
func (j *policies) rule(tx *audit.Tx, p *Policy, of *ruling, what string) error {
	terms, err := readTerms(tx.Tx)
	if err != nil {
		return err
	}
	if of, err = of.without(terms.FloorsOff); err != nil {
		return err
	}
	p.Version = of.version
	step := PolicyStep{Did: what, Result: map[string]any{"policy_version": of.version}}
	ruled, _, err := readActive(tx.Tx)
	if err != nil {
		return fmt.Errorf("read which policy rules: %w", err)
	}
	before := ruled.Policy
	if before != "" && before != p.PolicyID {
		old, err := j.kind.Need(tx, before)
		if err != nil {
			return err
		}
		step.Before = old
		old.Status, old.RetiredAt = PolicyRetired, tx.Now()
		if err := j.savePolicy(tx, old, "policy.retired", map[string]any{"by": tx.By.Name, "for": p.PolicyID}); err != nil {
			return err
		}
	}
	detail := map[string]any{"by": tx.By.Name, "policy_id": p.PolicyID, "policy_version": of.version, "before": before, "source_digest": p.SourceDigest}
	if of.policyID == "" {
		err = policyActive.Put(tx, activeKey, 0)
		p.ActivatedBy, p.ActivatedAt = tx.By.Name, tx.Now()
		if err == nil {
			tx.Changed("policy", p.PolicyID)
		}
	} else {
		_, _, n, _ := core.ParseID(p.PolicyID)
		if p.FirstBy != "" {
			detail["first_by"] = p.FirstBy
		}
		p.Status, p.ActivatedBy, p.ActivatedAt, p.FirstBy, p.FirstPerson = PolicyActive, tx.By.Name, tx.Now(), "", ""
		event := map[string]string{DidActivate: "policy.activated", DidRestore: "policy.restored"}[what]
		if err = j.savePolicy(tx, p, event, detail); err == nil {
			err = policyActive.Put(tx, activeKey, n)
		}
	}
	if err != nil {
		return fmt.Errorf("write which policy rules: %w", err)
	}
	if before != "" {
		step.Result["before"] = before
	}
	if p.TestsSummary != nil {
		step.Result["tests_summary"] = p.TestsSummary
	}
	if err := j.tell(tx, p, step); err != nil {
		return err
	}
	tenant := tx.Tenant()
	if _, err := tx.Record(audit.Entry{Type: "policy.rules", Subject: "policy.rules", ID: tenant, State: ruleOf{of.policyID}, Detail: detail}); err != nil {
		return fmt.Errorf("audit which policy rules: %w", err)
	}
	tx.OnCommit(func() { j.rest(tenant, j.rulings.change(tenant, func(*ruling) *ruling { return of })) })
	return nil
}

// PolicyTerms are what holds in a tenant whichever policy rules.
type PolicyTerms struct {
	TwoPersons bool     `json:"two_persons"`          // two operators must activate
	Jailed     bool     `json:"jailed"`               // a program that can't be jailed is refused
	FloorsOff  []string `json:"floors_off,omitempty"` // ids of the base's floors that don't hold, sorted
	Sign       Sign     `json:"sign,omitempty"`       // which answers need a signature; "" is SignOff
	// Loosened is the first of two who want less than what holds.
	Loosened *Loosening `json:"loosened,omitempty"`
}

// Loosening is what one person wants, until another wants it too.
type Loosening struct {
	By     string      `json:"by"`
	Person string      `json:"person,omitempty"` // who that is, under whatever name
	At     time.Time   `json:"at"`
	To     PolicyTerms `json:"to"`
}

// looser says whether terms ask for less than others did.
func (t *PolicyTerms) looser(before *PolicyTerms) bool {
	return before.TwoPersons && !t.TwoPersons || before.Jailed && !t.Jailed || t.lowers(before)
}

// lowers says whether a floor that held does no longer, or less has to be signed.
func (t *PolicyTerms) lowers(before *PolicyTerms) bool {
	grade := func(s Sign) int { return slices.Index(Signs(), cmp.Or(s, SignOff)) }
	return grade(t.Sign) < grade(before.Sign) || slices.ContainsFunc(t.FloorsOff, func(id string) bool { return !slices.Contains(before.FloorsOff, id) })
}

// Floors are the ids of the floors that can be switched off, sorted.
func (j *policies) Floors() []string {
	ids := map[string]bool{}
	for _, of := range j.table().held {
		for _, r := range of {
			ids[r.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// Terms are the tenant's.
func (j *policies) Terms(ctx context.Context, tenant string) (t PolicyTerms, err error) {
	err = j.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		t, err = readTerms(tx.Tx)
		return err
	})
	return t, err
}

// SetTerms changes what holds whichever policy rules. Where two persons must
// activate, two must want less; and two must want a floor off, wherever it is: that
// is an action at critical risk. The first of them leaves the terms as they are.
func (j *policies) SetTerms(ctx context.Context, by core.Caller, want PolicyTerms) (PolicyTerms, error) {
	if err := j.ledger.operator(ctx, by, "policy", "terms", "change it"); err != nil {
		return PolicyTerms{}, err
	}
	want.Loosened = nil
	want.FloorsOff = slices.Compact(slices.Sorted(slices.Values(want.FloorsOff)))
	if want.Sign == SignOff {
		want.Sign = ""
	}
	if want.Sign != "" && !slices.Contains(Signs(), want.Sign) {
		return PolicyTerms{}, core.Invalid("sign", string(want.Sign), list(Signs()))
	}
	floors := j.Floors()
	for _, id := range want.FloorsOff {
		if !slices.Contains(floors, id) {
			return PolicyTerms{}, core.Invalid("floors", id, strings.Join(floors, ", "))
		}
	}
	err := j.ledger.guarded(ctx, by, "change the terms of policies", "policy", "terms", func(tx *audit.Tx) error {
		now, err := readTerms(tx.Tx)
		if err != nil {
			return err
		}
		detail := map[string]any{"by": by.Name, "proof": by.Proof}
		if first := now.Loosened; want.looser(&now) && (now.TwoPersons || want.lowers(&now)) {
			switch {
			case first == nil || by.Is(first.By, first.Person) || digestOf(core.MustEncode(first.To)) != digestOf(core.MustEncode(want)):
				now.Loosened = &Loosening{By: by.Name, Person: by.Person, At: tx.Now(), To: want}
				want = now
			case want.lowers(&now) && by.Known.After(first.At):
				return core.Errorf(core.Denied, "policy terms: who wants a floor off, or less signed, has to be known before the first wanted it; %s is %s since %s", by.Proof, by.Name, clock(by.Known))
			default:
				detail["first"] = first
			}
		}
		if err := policyTerms.Put(tx, termsKey, want); err != nil {
			return fmt.Errorf("write the terms of policies: %w", err)
		}
		if want.lowers(&now) {
			detail["risk"] = Critical
		}
		if _, err := tx.Record(audit.Entry{Type: "policy.terms", Subject: "policy.terms", ID: tx.Tenant(), State: want, Detail: detail}); err != nil {
			return fmt.Errorf("audit the terms of policies: %w", err)
		}
		tx.Changed("policy.terms", tx.Tenant())
		tenant := tx.Tenant()
		tx.OnCommit(func() { j.rest(tenant, j.rulings.change(tenant, func(*ruling) *ruling { return nil })) })
		return nil
	})
	return want, err
}
