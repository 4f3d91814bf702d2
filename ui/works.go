package ui

import (
	"context"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
	"swarmdeck/ui/pane/fleet"
)

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
	for old := range r.seen {
		if now.Sub(r.seen[old].at) > looked {
			delete(r.seen, old)
		}
	}
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
