package resource

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
)

// View is a resource that is looked after, as it is shown.
type View struct {
	dag.Resource `json:",embed"`
	Driver       string            `json:"driver"`
	Holders      []Holder          `json:"attached_to"`
	Liveness     dag.LivenessState `json:"probed"` // by the newest probe
	Snapshots    int64             `json:"snapshots"`
}

// Holder is an agent that has a resource.
type Holder struct {
	AgentID string `json:"agent_id"`
	Hold    `json:",embed"`
}

// Attachment asks to attach a resource to an agent.
type Attachment struct {
	AgentID string
	// Target is a path, or the word of a driver and what it looks after:
	// files:PATH, git:PATH, process:PID, docker:volume/NAME, ….
	Target string
	Mode   dag.Mode // "" means rw
	Mount  string   // where the agent sees it, "" for in its own place
}

// Attach records that an agent has a resource from now on, and looks after it.
// Of one that it may write a state is kept before each of its tool calls.
func (r *Resources) Attach(ctx context.Context, by core.Caller, a Attachment) (View, error) {
	if err := operators(by, "attach"); err != nil {
		return View{}, err
	}
	a.Mode = cmp.Or(a.Mode, dag.ReadWrite)
	if a.Mode != dag.ReadWrite && a.Mode != dag.ReadOnly {
		return View{}, core.Invalid("mode", a.Mode, "ro, rw")
	}
	agent, err := r.opt.Agents.Agent(ctx, by.Tenant, a.AgentID)
	if err != nil {
		return View{}, err
	}
	if agent.Elsewhere {
		return View{}, core.Invalid("agent", a.AgentID, "an agent that works on this machine")
	}
	res, err := r.look(ctx, a.Target)
	if err != nil {
		return View{}, err
	}
	k, err := r.attach(ctx, by, agent.Name, res, Hold{Mode: a.Mode, Mount: a.Mount})
	if err != nil {
		return View{}, err
	}
	return r.view(ctx, by.Tenant, k)
}

// attach records it, unless it is so already.
func (r *Resources) attach(ctx context.Context, by core.Caller, agent string, res dag.Resource, h Hold) (k kept, err error) {
	err = r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		k, err = r.attaching(tx, agent, res, h)
		return err
	})
	return k, audit.Explain("attach a resource", err)
}

// tell records an event.
func (r *Resources) tell(tx *audit.Tx, h dag.Head, b dag.Body) error {
	h.TS = dag.At(tx.Now())
	e, err := dag.NewEvent(h, b)
	if err == nil {
		_, err = r.opt.DAG.EmitIn(tx, e)
	}
	return err
}

// attaching records that an agent has a resource, unless that is so already.
func (r *Resources) attaching(tx *audit.Tx, agent string, res dag.Resource, h Hold) (kept, error) {
	known, err := keptIn(tx, res.ID)
	if err != nil {
		return kept{}, err
	}
	k := kept{Resource: res, Place: r.opt.Place}
	if known != nil {
		k = *known
	}
	if was, has := k.Holders[agent]; has && was.Mode == h.Mode && was.Mount == h.Mount {
		return k, nil
	}
	h.Since = dag.At(tx.Now())
	head := dag.Head{AgentID: agent}
	if known == nil { // it is the first one's
		k.Resource.Scope = &dag.Scope{AgentID: agent}
		head.Nodes = append(head.Nodes, dag.NewNode(&k.Resource))
		if d, ok := r.opt.Drivers[metadataOf(&res).Driver].(Handled); ok && res.Imperative {
			handle := d.Handle(res)
			head.Nodes = append(head.Nodes, dag.NewNode(&handle))
		}
	}
	if err := hold(tx, &k, agent, &h); err != nil {
		return k, err
	}
	return k, r.tell(tx, head, &dag.ResourceAttached{ResourceRef: res.ID, Mode: h.Mode, Mount: h.Mount})
}

// Detach records that an agent has a resource no longer. What is kept of it
// stays.
func (r *Resources) Detach(ctx context.Context, by core.Caller, agent, id string) (View, error) {
	if err := operators(by, "detach"); err != nil {
		return View{}, err
	}
	var k kept
	err := r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		k, err = r.detaching(tx, agent, id)
		return err
	})
	if err != nil {
		return View{}, audit.Explain("detach a resource", err)
	}
	return r.view(ctx, by.Tenant, k)
}

// Left detaches what an agent has that is deleted.
func (r *Resources) Left(tx *audit.Tx, agent string) error {
	by := tx.By // an agent that deletes another can't speak for it
	tx.By = core.Self(tx.Tenant(), "resources")
	defer func() { tx.By = by }()
	all, err := heldIn(tx, agent)
	for _, k := range all {
		if err == nil {
			_, err = r.detaching(tx, agent, k.Resource.ID)
		}
	}
	return err
}

// detaching records that an agent has a resource no longer.
func (r *Resources) detaching(tx *audit.Tx, agent, id string) (k kept, err error) {
	known, err := keptIn(tx, id)
	if err == nil && known == nil {
		err = core.Missing("resource", id).With("field", "resource")
	}
	if err != nil {
		return k, err
	}
	if _, has := known.Holders[agent]; !has {
		allowed := strings.Join(slices.Sorted(maps.Keys(known.Holders)), ", ")
		return k, core.Invalid("agent", agent, "an agent that has "+id+": "+cmp.Or(allowed, "none has"))
	}
	k = *known
	if err := hold(tx, &k, agent, nil); err != nil {
		return k, err
	}
	return k, r.tell(tx, dag.Head{AgentID: agent}, &dag.ResourceDetached{ResourceRef: id})
}

// Probe looks whether a resource is there, and records what it found.
func (r *Resources) Probe(ctx context.Context, by core.Caller, id string) (View, error) {
	if err := operators(by, "probe"); err != nil {
		return View{}, err
	}
	k, err := r.kept(ctx, by.Tenant, id)
	if err != nil {
		return View{}, err
	}
	d, err := r.driverHere(&k)
	if err != nil {
		return View{}, err
	}
	found, err := d.Probe(ctx, k.Resource)
	if err != nil {
		return View{}, audit.Explain("probe "+id, err)
	}
	err = r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := log(tx, "probed", id, map[string]any{"status": found}); err != nil {
			return err
		}
		return r.tell(tx, dag.Head{}, &dag.LivenessProbe{ResourceRef: id, Status: found})
	})
	if err != nil {
		return View{}, audit.Explain("record a probe", err)
	}
	return r.view(ctx, by.Tenant, k)
}

// Show returns a resource that is looked after.
func (r *Resources) Show(ctx context.Context, tenant, id string) (View, error) {
	k, err := r.kept(ctx, tenant, id)
	if err != nil {
		return View{}, err
	}
	return r.view(ctx, tenant, k)
}

// List lists what is looked after; of an agent with f.Agent, of a kind with
// f.Kind, and whose name holds f.Match.
func (r *Resources) List(ctx context.Context, tenant string, f core.Filter) (core.Page[View], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[View]{}, err
	}
	g := core.Gather[View]{Filter: f}
	err = r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return resources.Each(tx, nil, func(_ record.Parts, k kept) (bool, error) {
			_, holds := k.Holders[f.Agent]
			if f.Agent != "" && !holds || f.Kind != "" && string(k.Resource.Kind) != f.Kind ||
				!strings.Contains(strings.ToLower(k.Resource.ID+" "+k.Resource.Name), strings.ToLower(f.Match)) {
				return true, nil
			}
			g.Add(viewOf(k))
			return true, nil
		})
	})
	for i := range g.Items {
		if err == nil {
			err = r.complete(ctx, tenant, &g.Items[i])
		}
	}
	if err != nil {
		return core.Page[View]{}, audit.Explain("list the resources", err)
	}
	return g.Result(), nil
}

func viewOf(k kept) View {
	v := View{Resource: k.Resource, Driver: metadataOf(&k.Resource).Driver, Holders: []Holder{}}
	for _, name := range slices.Sorted(maps.Keys(k.Holders)) {
		v.Holders = append(v.Holders, Holder{name, k.Holders[name]})
	}
	return v
}

func (r *Resources) view(ctx context.Context, tenant string, k kept) (View, error) {
	v := viewOf(k)
	return v, r.complete(ctx, tenant, &v)
}

// complete adds what the record and the book say beside the resource itself.
func (r *Resources) complete(ctx context.Context, tenant string, v *View) (err error) {
	if v.Liveness, err = r.opt.DAG.Liveness(ctx, tenant, v.ID); err != nil {
		return err
	}
	return r.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		v.Snapshots = tx.Counter(countSnapshots(v.ID))
		return nil
	})
}
