package policy

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/store"
)

func TestTheExampleProgramPassesItsCases(t *testing.T) {
	need(t, python)
	db, err := store.Open(filepath.Join(t.TempDir(), "x.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if err := db.CreateTenant(ctx, "t_acme"); err != nil {
		t.Fatal(err)
	}
	j, err := judge.New(judge.Options{Ledger: audit.New(db, audit.Options{}), Programs: jailedRunner(t)})
	if err != nil {
		t.Fatal(err)
	}
	in := judge.Proposal{Kind: judge.KindProgram, Name: "spend", Interpreter: python}
	if in.Source, err = os.ReadFile("../../examples/policies/spend.py"); err != nil {
		t.Fatal(err)
	}
	if in.Cases, err = os.ReadFile("../../examples/policies/spend.jsonl"); err != nil {
		t.Fatal(err)
	}
	by := core.Caller{Tenant: "t_acme", Name: "ann", Kind: core.Operator}
	for _, in.Serve = range []bool{false, true} {
		p, err := j.Propose(ctx, by, in)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = j.Activate(ctx, by, p.PolicyID); err != nil || p.TestsSummary.Passed != 5 || p.Unsandboxed {
			t.Fatalf("serve %v: %+v %v", in.Serve, p, err)
		}
	}
}
