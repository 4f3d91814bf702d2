package ui

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/ui/compare"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/review"
)

// diffs are what the cockpit has to show as diffs: agent:NAME is what the agent's newest
// run changed, approval:ID what an action would change, compare:A B what each of two did.
type diffs struct {
	agents   fleet.Agents
	judge    gate.Judge
	comparer record.Comparer
}

// Diff implements review.Source.
func (d diffs) Diff(ctx context.Context, tenant, ref string) (review.Stored, error) {
	kind, id, _ := strings.Cut(ref, ":")
	var text strings.Builder
	version, title := "", ""
	switch kind {
	case "agent":
		did, err := d.agents.Activity(ctx, tenant, id, time.Time{})
		if err != nil {
			return review.Stored{}, err
		}
		for i := range did.Diffs {
			text.WriteString(diff.Named(did.Diffs[i].Path, did.Diffs[i].Text))
		}
		title = "of " + id
	case "approval":
		a, err := d.judge.Card(ctx, tenant, id)
		if err != nil {
			return review.Stored{}, err
		}
		for i := range a.Changes {
			text.WriteString(diff.Named(a.Changes[i].Path, a.Changes[i].Diff))
		}
		version, title = a.Digest, fmt.Sprintf("that %s wants to make", cmp.Or(a.Agent.Name, string(a.RequestedKind)))
	case "compare":
		a, b, _ := strings.Cut(id, " ")
		c, err := d.comparer.Compare(ctx, tenant, a, b)
		if err != nil {
			return review.Stored{}, err
		}
		for _, of := range compare.Diffs(&c) {
			text.WriteString(diff.Named(of.Name, of.Text))
		}
		title = "of " + a + " (A) and " + b + " (B)"
	default:
		return review.Stored{}, core.Invalid("diff", ref, "agent:NAME, approval:ID or compare:A B")
	}
	r := strings.NewReader(text.String())
	return review.Stored{Title: title, Version: version + core.SHA256(text.String()), Text: r, Size: r.Size()}, nil
}
