package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
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

// looked is how old a look at a tree may be: one takes several runs of git, and the
// world changes many times a second.
const looked = 3 * time.Second

// reviews are the works of agents as the cockpit lists them; it implements review.Work.
type reviews struct {
	trees treeLooks
	tasks fleet.Tasks
	clock core.Clock
	// turn is the number of the newest event about an agent.
	turn func(tenant, agent string) uint64

	mu   sync.Mutex
	seen map[string]seen // by tenant and agent
}

type seen struct {
	at   time.Time
	turn uint64 // of the agent and of its tree: as long as it is the same, a look may be old
	look tree.Look
}

// treeLooks are the trees of agents; *tree.Trees has it.
type treeLooks interface {
	All(tenant string) []tree.Tree
	Has(tenant, agent string) (tree.Tree, bool)
	Look(ctx context.Context, tenant, agent string) (tree.Look, error)
	Review(tenant, agent string) tree.Review
}

func (r *reviews) Looks(ctx context.Context, tenant string, f core.Filter) (page core.Page[tree.Look], err error) {
	trees, err := core.Pick(r.trees.All(tenant), nil, f, func(t tree.Tree) core.Traits {
		return core.Traits{Status: string(t.Phase), Agent: t.Agent, At: t.CreatedAt, Text: t.Agent + " " + t.Source + " " + t.Base}
	})
	page.Info = trees.Info
	for i := 0; i < len(trees.Items) && err == nil; i++ {
		var l tree.Look
		l, err = r.Look(ctx, tenant, trees.Items[i].Agent)
		page.Items = append(page.Items, l)
	}
	return page, err
}

func (r *reviews) Look(ctx context.Context, tenant, agent string) (l tree.Look, err error) {
	key, now := tenant+"/"+agent, r.clock.Now()
	r.mu.Lock()
	known, ok := r.seen[key]
	r.mu.Unlock()
	said := r.trees.Review(tenant, agent)
	turn := r.Turn(tenant, agent)
	if ok && known.turn == turn && now.Sub(known.at) < looked {
		l = known.look
		l.Remarks, l.Checked = said.Remarks, said.Checked
		return l, nil
	}
	if l, err = r.trees.Look(ctx, tenant, agent); err != nil {
		return l, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.seen, func(_ string, old seen) bool { return now.Sub(old.at) > looked })
	r.seen[key] = seen{r.clock.Now(), turn, l}
	return l, nil
}

func (r *reviews) Turn(tenant, agent string) uint64 {
	of, _ := r.trees.Has(tenant, agent)
	return max(of.AuditSeq, r.turn(tenant, agent))
}

func (r *reviews) Review(tenant, agent string) tree.Review { return r.trees.Review(tenant, agent) }

func (r *reviews) Asked(ctx context.Context, tenant, agent string) (all []tree.Input, err error) {
	for _, status := range []task.Status{task.Running, task.Queued} {
		page, err := r.tasks.List(ctx, tenant, core.Filter{Kind: tree.KindMerge, Status: string(status), Size: core.MaxPageSize})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			var in tree.Input
			if core.DecodeStored(page.Items[i].Input, &in) == nil && in.Agent == agent {
				all = append(all, in)
			}
		}
	}
	return all, nil
}
