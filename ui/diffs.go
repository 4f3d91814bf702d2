package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/tree"
	"swarmdeck/ui/compare"
	"swarmdeck/ui/diff"
	"swarmdeck/ui/pane/fleet"
	"swarmdeck/ui/pane/gate"
	"swarmdeck/ui/pane/record"
	"swarmdeck/ui/pane/review"
)

// diffs are what the cockpit has to show as diffs: agent:NAME is what the agent's newest
// run changed, approval:ID what an action would change, compare:A B what each of two did,
// tree:NAME what the agent changed in its tree, tree:A B the work of A against that of B.
type diffs struct {
	trees    works
	agents   fleet.Agents
	judge    gate.Judge
	comparer record.Comparer
}

// works are the trees of agents; *tree.Trees has it.
type works interface {
	Compare(ctx context.Context, tenant, agent string, q tree.Query) (tree.Compared, error)
	Write(ctx context.Context, c tree.Compared, out io.Writer) error
	Whole(ctx context.Context, tenant string, action judge.Action) ([]byte, error)
}

// maxWork bounds what is shown of the work in a tree, in bytes.
const maxWork = 128 << 20

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
		if a.Cut && a.Status == judge.Open {
			whole, err := d.trees.Whole(ctx, tenant, a.Action)
			if err != nil {
				return review.Stored{}, err
			}
			text.Reset()
			text.Write(whole)
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
	case "tree":
		agent, against, _ := strings.Cut(id, " ")
		c, err := d.trees.Compare(ctx, tenant, agent, tree.Query{Against: against})
		if err != nil {
			return review.Stored{}, err
		}
		var b bytes.Buffer
		if err := d.trees.Write(ctx, c, &tree.Bounded{To: &b, Most: maxWork}); err != nil {
			return review.Stored{}, err
		}
		out := review.Stored{Title: "of " + agent + "'s tree", Version: c.From + c.To, Text: bytes.NewReader(b.Bytes()), Size: int64(b.Len())}
		if against != "" {
			out.Title += " against " + against + "'s"
			return out, nil
		}
		out.State, out.Parts = c.To, tree.Parts(b.Bytes())
		return out, nil
	default:
		return review.Stored{}, core.Invalid("diff", ref, "tree:NAME, tree:A B, agent:NAME, approval:ID or compare:A B")
	}
	r := strings.NewReader(text.String())
	return review.Stored{Title: title, Version: version + core.SHA256(text.String()), Text: r, Size: r.Size()}, nil
}
