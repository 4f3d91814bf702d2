package judge

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"swarmdeck/engine/core"
)

// Trial asks a policy, whether or not it rules, without effect. Close ends it.
type Trial struct {
	PolicyID string // BasePolicy for the embedded one; "" of a file
	Name     string
	Version  string
	j        *Judge
	tenant   string
	of       *ruling
}

// Trial begins to try a policy: one of that id, or NAME or NAME@VERSION of one
// that there is, of several the newest; "" is the one that rules.
func (j *Judge) Trial(ctx context.Context, by core.Caller, policy string) (*Trial, error) {
	if policy == "" {
		of := j.ruling(ctx, by.Tenant)
		return &Trial{cmp.Or(of.policyID, BasePolicy), of.name, of.version, j, by.Tenant, of}, nil
	}
	id, err := j.policyNamed(ctx, by.Tenant, policy)
	if err != nil {
		return nil, err
	}
	of, d, err := j.onTrial(ctx, by, id)
	if err != nil {
		return nil, err
	}
	return &Trial{d.PolicyID, d.Name, of.version, j, by.Tenant, of}, nil
}

// TrialOf begins to try rules that are not proposed yet.
func (j *Judge) TrialOf(by core.Caller, source []byte) (*Trial, error) {
	of, err := j.compilePolicy(&Policy{TenantID: by.Tenant, Kind: KindRules, Name: "file", SourceDigest: digestOf(source)}, source)
	if err != nil {
		return nil, err
	}
	return &Trial{"", "file", of.version, j, by.Tenant, of}, nil
}

// policyNamed is the id of a policy.
func (j *Judge) policyNamed(ctx context.Context, tenant, policy string) (string, error) {
	if _, _, _, is := core.ParseID(policy); is || policy == BasePolicy {
		return policy, nil
	}
	name, version, _ := strings.Cut(policy, "@")
	all, err := j.Policies(ctx, tenant)
	if err != nil {
		return "", err
	}
	for i := range all {
		if p := &all[i]; p.Name == name && strings.HasPrefix(p.Version, version) {
			return p.PolicyID, nil
		}
	}
	return "", core.Missing("policy", policy)
}

// Answer is what the policy would answer.
func (t *Trial) Answer(ctx context.Context, ask *Ask) (decision string, v Verdict) {
	v = t.j.by(ctx, t.of, t.tenant, ask, nil)
	return said(&v), v
}

// Recall is what a decision was about; false when nobody knows any more.
func (t *Trial) Recall(ctx context.Context, decision string) (Ask, bool, error) {
	d, err := t.j.Decision(ctx, t.tenant, decision)
	if refused := new(core.Error); errors.As(err, &refused) { // it left, or is of another record
		return Ask{}, false, nil
	}
	if err != nil {
		return Ask{}, false, err
	}
	return t.j.recall(ctx, t.tenant, &d)
}

// Close ends what the trial keeps running.
func (t *Trial) Close() { t.j.rest(t.tenant, t.of) }
