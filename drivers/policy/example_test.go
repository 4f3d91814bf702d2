package policy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestTheExampleProgramPassesItsCases(t *testing.T) {
	need(t, python)
	db := expect.Of(store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{}))(t)
	defer db.Close()
	ctx := context.Background()
	expect.No(t, db.CreateTenant(ctx, "t_acme"))
	j := expect.Of(judge.New(judge.Options{Ledger: audit.New(db, audit.Options{}), Programs: jailedRunner(t)}))(t)
	in := judge.Proposal{Kind: judge.KindProgram, Name: "spend", Interpreter: python}
	in.Source = expect.Of(os.ReadFile("../../examples/policies/spend.py"))(t)
	in.Cases = expect.Of(os.ReadFile("../../examples/policies/spend.jsonl"))(t)
	by := core.Caller{Tenant: "t_acme", Name: "ann", Kind: core.Operator}
	for _, in.Serve = range []bool{false, true} {
		p, err := j.Propose(ctx, by, in)
		expect.No(t, err)
		p, err = j.Activate(ctx, by, p.PolicyID)
		expect.Must(t, err == nil && p.TestsSummary.Passed == 5 && !p.Unsandboxed, "serve %v: %+v %v", in.Serve, p, err)
	}
}
