package judge

import (
	"fmt"

	"swarmdeck/engine/audit"
)

// Book is the agents' record, where it tells of the lives of policies.
type Book interface {
	// PolicyStated tells a step of a policy's life, in the transaction that
	// makes it; p is the policy after it.
	PolicyStated(tx *audit.Tx, p Policy, step PolicyStep) error
}

// PolicyStep is one step of a policy's life.
type PolicyStep struct {
	Did    string // one of the steps below
	Args   map[string]any
	Result map[string]any
	Before *Policy // what ruled before; nil for the embedded policy, and where none is replaced
}

// The steps. Under two persons the first who activates or restores a policy
// leaves it as it was.
const (
	DidPropose  = "propose"
	DidTest     = "test"
	DidBacktest = "backtest"
	DidActivate = "activate"
	DidRestore  = "restore"
	DidWithdraw = "withdraw"
)

// maxTold bounds how many cases and groups of flips the record tells of.
const maxTold = 50

// Proposed is the step that made a proposal.
func (p *Policy) Proposed() PolicyStep {
	args := map[string]any{
		"name": p.Name, "kind": p.Kind, "source_digest": p.SourceDigest, "cases": p.Cases,
		"proposed_by": p.ProposedBy, "proposed_kind": p.ProposedKind,
	}
	if p.CasesDigest != "" {
		args["cases_digest"] = p.CasesDigest
	}
	if p.Kind == KindProgram {
		args["serve"], args["interpreter"], args["gates"] = p.Serve, append([]string{}, p.Interpreter...), append([]Gate{}, p.Gates...)
	}
	return PolicyStep{Did: DidPropose, Args: args, Result: map[string]any{"uri": p.URI, "policy_version": p.Version}}
}

// tested is the step of a test.
func tested(sum TestsSummary, results []CaseResult) PolicyStep {
	failed := []map[string]any{}
	for _, r := range results {
		if !r.Passed && len(failed) < maxTold {
			failed = append(failed, map[string]any{"name": r.Name, "want": r.Want, "decision": r.Decision, "reason_code": r.ReasonCode})
		}
	}
	return PolicyStep{Did: DidTest, Result: map[string]any{"tests_summary": sum, "failed": failed}}
}

// backtested is the step of a backtest.
func backtested(rep BacktestReport) PolicyStep {
	rep.Groups = rep.Groups[:min(len(rep.Groups), maxTold)]
	return PolicyStep{Did: DidBacktest, Args: map[string]any{"last": rep.Last}, Result: map[string]any{"report": rep}}
}

// PolicySteps grows with each step that a policy of the tenant takes.
func (j *Judge) PolicySteps(tenant string) int {
	_, n := j.rulings.get(tenant)
	return n
}

// tell tells the record, and who watches, of a step.
func (j *Judge) tell(tx *audit.Tx, p *Policy, step PolicyStep) error {
	tenant := tx.Tenant()
	tx.OnCommit(func() { j.rulings.step(tenant) })
	if j.book == nil {
		return nil
	}
	if err := j.book.PolicyStated(tx, *p, step); err != nil {
		return fmt.Errorf("record the %s of policy %s: %w", step.Did, p.PolicyID, err)
	}
	return nil
}
