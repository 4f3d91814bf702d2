package op

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func decisions() []*Op {
	id := arg("ID", "decision")
	return []*Op{
		list(Op{
			Name: "decision list", Short: "List the gate decisions, newest first",
			Statuses: core.Strings(judge.Approve, judge.Deny, judge.HITL),
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[judge.GateDecision]] { return c.Judge.Decisions })),
		show(Op{Name: "decision show", Short: "Show a gate decision"}, id,
			byTenant(func(c *Call) tenantRead[string, judge.GateDecision] { return c.Judge.Decision })),
		decisionExport(),
		show(Op{Name: "decision why", Short: "Say on what grounds a policy decided: which rule, of which version, and what it read"}, id, grounds),
	}
}

func grounds(ctx context.Context, c *Call, id string) (judge.Grounds, error) {
	return c.Judge.Grounds(ctx, c.By.Tenant, id)
}

// Exports are signed answers, each with the line that checks it.
type Exports struct {
	Answers []judge.Export `json:"answers"`
}

// String is the lines that check them, in a directory that holds their files.
func (e Exports) String() string {
	var b strings.Builder
	for _, x := range e.Answers {
		fmt.Fprintf(&b, "ssh-keygen -Y verify -n %s -f allowed_signers -I '%s' -s %s.sig < %s\n", judge.SignNamespace, strings.ReplaceAll(x.Principal, "'", `'\''`), x.DecisionID, x.DecisionID)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// files are those that the lines name, by name.
func (e Exports) files() map[string]string {
	all := map[string]string{"allowed_signers": ""}
	for _, x := range e.Answers {
		all[x.DecisionID], all[x.DecisionID+".sig"] = x.Statement, x.Signature
		if !strings.Contains(all["allowed_signers"], x.Signers) {
			all["allowed_signers"] += x.Signers
		}
	}
	return all
}

func decisionExport() *Op {
	var out string
	return show(Op{
		Name: "decision export", Short: "Give the signed answers of a decision or an approval, for ssh-keygen to verify anywhere",
		Long: "Give each signed answer with its statement, its signature and its key, and the line that verifies it with a stock\n" +
			"ssh-keygen. With --out the files that these lines name are written.",
		Example: "decision export ap_… --out proof",
		Params:  []*Param{flag(&out, "out", "write the files into this `DIR`, which must not exist").makes()},
	}, arg("ID", "decision"), func(ctx context.Context, c *Call, id string) (all Exports, err error) {
		if all.Answers, err = c.Judge.Exported(ctx, c.By.Tenant, id); err != nil || out == "" {
			return all, err
		}
		dir := filepath.Clean(c.path(out))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return all, FileFault("make", "out", out, err)
		}
		for name, text := range all.files() {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return all, errors.Join(fmt.Errorf("export to %s: %w", out, err), os.RemoveAll(dir)) // half an export is worse than none
			}
		}
		return all, nil
	})
}
