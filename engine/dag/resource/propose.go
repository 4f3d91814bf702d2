package resource

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// GoOn is what a fork from the midst of a run is told, unless somebody says
// otherwise.
const GoOn = "Go on from where the record ends."

// Proposal is a fork as it would be: the names, and what happens to each
// resource that the agent had at the event.
type Proposal struct {
	AgentID    string   `json:"agent_id"`
	Name       string   `json:"name"`
	FromBranch string   `json:"from_branch"`
	ToBranch   string   `json:"to_branch"`
	AtEvent    string   `json:"at_event"`
	Kind       dag.Kind `json:"kind"` // of that event
	Brief      string   `json:"brief,omitempty"`
	Continued  string   `json:"continued"` // "record": the conversation is made again from it
	Turns      int      `json:"turns"`     // lines of it that the fork is given
	Left       bool     `json:"left,omitzero"`
	Task       string   `json:"task,omitempty"` // what the fork is told first
	Dir        string   `json:"dir,omitempty"`  // where it works
	Parts      []Part   `json:"resources"`
	// Edited is the event as it is for the fork, where that is not as it was.
	Edited *dag.Edited `json:"edited,omitzero"`

	at     dag.Detail
	source Agent
}

// ForkRequest asks for a fork.
type ForkRequest struct {
	AgentID string
	At      string            // event id
	To      string            // branch; "" is the new agent's name
	Name    string            // of the new agent; "" is one that is free
	Task    *string           // what it is told first; nil is GoOn in the midst of a run, else nothing
	Plan    map[string]Choice // by the id or name of a resource; others as proposed
	Edit    core.Raw          // fields of the event that are others for the fork, see dag.Edit; nil leaves it
	Reason  string            // why, for the record
}

// Plan says what a fork of an agent at an event would be. It changes nothing.
func (r *Resources) Plan(ctx context.Context, tenant string, q ForkRequest) (p Proposal, err error) {
	p = Proposal{AgentID: q.AgentID, Continued: FromRecord}
	if p.source, err = r.opt.Agents.Agent(ctx, tenant, q.AgentID); err != nil {
		return p, err
	}
	if p.source.Elsewhere {
		return p, core.Invalid("agent", q.AgentID, "an agent that works on this machine: what it works on elsewhere can't be forked")
	}
	if p.at, err = r.opt.DAG.Get(ctx, tenant, q.At); err != nil {
		return p, err
	}
	if p.at.Event.AgentID != q.AgentID {
		return p, core.Errorf(core.InvalidInput, "at: event %s is of agent %q; allowed: an event of %s", short(q.At), p.at.Event.AgentID, q.AgentID).With("field", "at")
	}
	if p.at.Event.TS.Time().Before(p.source.CreatedAt) {
		return p, core.Errorf(core.InvalidInput, "at: event %s is of an earlier agent named %s; allowed: an event since %s", short(q.At), q.AgentID, dag.At(p.source.CreatedAt)).With("field", "at")
	}
	p.AtEvent, p.Kind = p.at.Event.EventID, p.at.Event.Kind
	if err := r.inherited(ctx, core.Self(tenant, "resources"), p.source); err != nil {
		return p, err
	}
	if len(q.Edit) > 0 {
		if p.Edited, err = r.opt.DAG.Edit(ctx, tenant, p.AtEvent, q.Edit); err != nil {
			return p, err
		}
		p.Edited.Reason = core.ClipTo(q.Reason, 1024)
	}
	said, err := r.opt.DAG.Conversation(ctx, tenant, r.pastOf(p))
	if err != nil {
		return p, err
	}
	p.Turns, p.Left = len(said.Lines), said.Left
	switch {
	case q.Task != nil && !utf8.ValidString(*q.Task):
		return p, core.Invalid("task", fmt.Sprintf("%q", *q.Task), "text")
	case q.Task != nil:
		p.Task = *q.Task
	case p.at.Event.RunID != "" && !said.Over:
		p.Task = GoOn
	}
	if err := r.names(ctx, tenant, q, &p); err != nil {
		return p, err
	}
	if p.Parts, err = r.parts(ctx, tenant, p); err != nil {
		return p, err
	}
	if err := apply(p.Parts, q.Plan, p.FromBranch, p.ToBranch); err != nil {
		return p, err
	}
	return p, r.places(ctx, tenant, &p)
}

// pastOf is the conversation that a fork goes on from.
func (r *Resources) pastOf(p Proposal) dag.ConversationQuery {
	return dag.ConversationQuery{Event: p.AtEvent, Since: p.source.CreatedAt, Run: p.source.Alone}
}

func short(id string) string { return id[:min(len(id), 12)] }

// maxName is how long an agent's name may be (model 2).
const maxName = 20

// names finds a name and a branch that are free, or refuses those wanted.
func (r *Resources) names(ctx context.Context, tenant string, q ForkRequest, p *Proposal) error {
	p.FromBranch = "main"
	if p.source.Forked != nil {
		p.FromBranch = p.source.Forked.Branch
	}
	p.Name = q.Name
	if q.Name == "" {
		for n := 2; ; n++ {
			end := fmt.Sprintf("-%d", n)
			p.Name = strings.TrimSuffix(q.AgentID[:min(len(q.AgentID), maxName-len(end))], "-") + end
			_, err := r.opt.Agents.Agent(ctx, tenant, p.Name)
			if errors.Is(err, core.Kind(core.NotFound)) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	p.ToBranch = q.To
	if p.ToBranch == "" {
		p.ToBranch = p.Name
	}
	if len(p.ToBranch) > 64 || !utf8.ValidString(p.ToBranch) || strings.ContainsAny(p.ToBranch, "/ \t") || strings.ContainsFunc(p.ToBranch, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return core.Invalid("to", p.ToBranch, "1-64 characters without spaces and /")
	}
	if p.ToBranch == p.FromBranch {
		return core.Invalid("to", p.ToBranch, "another branch than the one it is forked from")
	}
	found, err := r.opt.DAG.Ancestry(ctx, tenant, dag.BranchID(q.AgentID, p.ToBranch))
	if err == nil && len(found) > 0 {
		return core.Errorf(core.Conflict, "to: %s has a branch %s already; allowed: another name", q.AgentID, p.ToBranch).With("field", "to")
	}
	if err != nil && !errors.Is(err, core.Kind(core.NotFound)) {
		return err
	}
	return r.opt.Agents.Check(ctx, tenant, Made{Name: p.Name, Origin: fleet.Origin{AgentID: q.AgentID, Branch: p.ToBranch}})
}

// parts are the resources that the agent had at the event, and the directory it
// works in, each as it is proposed.
func (r *Resources) parts(ctx context.Context, tenant string, p Proposal) ([]Part, error) {
	was, err := r.opt.DAG.At(ctx, tenant, p.AtEvent)
	if err != nil {
		return nil, err
	}
	parts := []Part{}
	add := func(res dag.Resource, h Hold, managed bool) {
		if slices.ContainsFunc(parts, func(p Part) bool { return p.Resource.ID == res.ID }) {
			return
		}
		parts = append(parts, Part{Resource: res, Hold: h, managed: managed})
	}
	all, err := r.held(ctx, tenant, p.AgentID)
	if err != nil {
		return nil, err
	}
	for _, m := range was.Mounts {
		h := Hold{Mode: m.Mode, Mount: m.Mount, Since: m.Since}
		k, err := r.kept(ctx, tenant, m.ResourceID)
		switch {
		case err == nil:
			add(k.Resource, h, true)
		case !errors.Is(err, core.Kind(core.NotFound)):
			return nil, err
		default:
			add(dag.Resource{ID: m.ResourceID, Kind: dag.ResourceURI, Name: m.ResourceID, Capabilities: []dag.Capability{}, Imperative: true}, h, false)
		}
	}
	// What it works in counts as there from its beginning.
	if k, _ := holding(all, p.source.Dir); k != nil {
		add(k.Resource, k.Holders[p.AgentID], true)
	} else if p.source.Dir != "" && !slices.ContainsFunc(parts, func(part Part) bool { return holds(&part.Resource, p.source.Dir) }) {
		res, err := r.look(ctx, p.source.Dir)
		if err != nil {
			return nil, err
		}
		add(res, Hold{Mode: dag.ReadWrite}, true)
	}
	for i := range parts {
		if err := r.proposePart(ctx, tenant, &parts[i], p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// proposePart chooses for a resource: a state of its own where there can be
// one, else to leave it to the agent that has it.
func (r *Resources) proposePart(ctx context.Context, tenant string, part *Part, p Proposal) error {
	part.rules()
	part.Choice = Choice{Mode: dag.PlanKeep, KeptBy: p.FromBranch}
	switch {
	case part.Hold.Mode == dag.ReadOnly && part.shared():
		part.Choice = Choice{Mode: dag.PlanKeep}
	case part.managed && part.Resource.Restorable() && part.Resource.Can(dag.CanFork):
		part.Choice = Choice{Mode: dag.PlanSnapshot}
	}
	if !slices.Contains(part.Allowed, dag.PlanSnapshot) {
		return nil
	}
	return r.stateOf(ctx, tenant, part, p)
}

// stateOf finds the state that a resource had at the event.
func (r *Resources) stateOf(ctx context.Context, tenant string, part *Part, p Proposal) error {
	var before, after *state
	var beforeAt, afterAt uint64
	err := r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		before, after, beforeAt, afterAt, err = stateAt(tx, part.Resource.ID, p.at.Pos)
		return err
	})
	if err != nil {
		return audit.Explain("look for the state at the event", err)
	}
	use := func(s *state, exact bool) error {
		snap, err := r.shot(ctx, tenant, s.Snapshot)
		if err == nil {
			err = r.keptAway(&snap)
		}
		if err != nil {
			return err
		}
		part.SnapshotRef, part.SnapshotAt, part.Exact = s.Snapshot, snap.Snapshot.CreatedAt, exact && !s.During
		return nil
	}
	if before != nil {
		called, err := r.opt.DAG.Called(ctx, tenant, p.AgentID, beforeAt, p.at.Pos)
		if err != nil {
			return err
		}
		if !called {
			return use(before, true)
		}
	}
	if after != nil && p.Kind != dag.KindToolCall {
		called, err := r.opt.DAG.Called(ctx, tenant, p.AgentID, p.at.Pos, afterAt+1)
		if err != nil {
			return err
		}
		if !called {
			return use(after, true)
		}
	}
	if before != nil {
		return use(before, false)
	}
	return nil // it is taken when the fork is made
}

// places says where everything goes, and what that means.
func (r *Resources) places(ctx context.Context, tenant string, p *Proposal) error {
	used := map[string]bool{}
	base := ""
	if r.opt.Dir != "" {
		base = filepath.Join(r.opt.Dir, tenant, p.Name)
	}
	for i := range p.Parts {
		part := &p.Parts[i]
		path := metadataOf(&part.Resource).Path
		if part.makes() {
			if path == "" {
				part.Dest = part.Resource.Name + "-" + p.Name
			} else {
				plain := plainName(filepath.Base(path))
				name := plain
				for n := 2; used[name]; n++ {
					name = fmt.Sprintf("%s-%d", plain, n)
				}
				used[name] = true
				part.Dest = filepath.Join(base, name)
			}
		}
		part.Note = part.explain(p)
		if !holds(&part.Resource, p.source.Dir) {
			continue
		}
		rel, err := filepath.Rel(path, p.source.Dir)
		if err != nil {
			return fmt.Errorf("find where the fork works: %w", err)
		}
		switch {
		case part.Dest != "":
			p.Dir = filepath.Join(part.Dest, rel)
		case part.lost(p.ToBranch) && p.source.Running:
			return core.Errorf(core.Conflict, "plan.%s: %s works in it: stop it first, or let %s keep it", part.Resource.ID, p.AgentID, p.FromBranch).With("field", "plan")
		case part.has(p.ToBranch):
			p.Dir = p.source.Dir
		}
	}
	if !utf8.ValidString(p.Dir) {
		return core.Invalid("dir", fmt.Sprintf("%q", p.Dir), "a fork that works in a directory whose name is text")
	}
	if p.Dir == "" && base != "" {
		p.Dir = filepath.Join(base, "work")
		for n := 2; used[filepath.Base(p.Dir)]; n++ {
			p.Dir = filepath.Join(base, fmt.Sprintf("work-%d", n))
		}
	}
	return nil
}

// plainName is a name that any program takes as the name of a directory.
func plainName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, s[:min(len(s), 100)])
	if s = strings.TrimLeft(s, ".-"); s == "" {
		return "work"
	}
	return s
}

// explain says what a fork gets of a resource.
func (p *Part) explain(f *Proposal) string {
	switch {
	case p.Mode == dag.PlanDiscard:
		return "the fork goes without it"
	case p.Mode == dag.PlanKeep && p.KeptBy == "":
		return "both have it: what one changes, the other sees"
	case p.Mode == dag.PlanKeep && p.KeptBy == f.ToBranch:
		return f.AgentID + " loses it to the fork"
	case p.Mode == dag.PlanKeep:
		return f.AgentID + " keeps it, the fork goes without it"
	}
	when := "as it is now: no state of then was kept"
	switch {
	case p.SnapshotRef != "" && p.Exact:
		when = "as it was at the event"
	case p.SnapshotRef != "":
		when = "as it was at " + p.SnapshotAt.String() + ": calls since then may have changed it"
	}
	if !p.makes() {
		return "its state is kept " + when + "; it can't be made again, so the fork goes without it"
	}
	return "a copy of its own, " + when
}

// holding is the resource that a path lies in: the innermost.
func holding(all []kept, path string) (found *kept, length int) {
	for i := range all {
		if at := metadataOf(&all[i].Resource).Path; path != "" && holds(&all[i].Resource, path) && len(at) > length {
			found, length = &all[i], len(at)
		}
	}
	return found, length
}

// holds reports whether a path lies in a resource.
func holds(res *dag.Resource, path string) bool {
	at := metadataOf(res).Path
	return at != "" && path != "" && (path == at || strings.HasPrefix(path, at+string(filepath.Separator)))
}
