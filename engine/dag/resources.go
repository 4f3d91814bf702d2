package dag

import (
	"cmp"
	"context"
	"slices"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// ResourceAt is a resource as it was at a time.
type ResourceAt struct {
	ID       string        `json:"id"`
	Resource *Resource     `json:"resource,omitzero"` // as stated by then; absent when it was only named
	Since    Time          `json:"valid_from"`
	Owners   []NodeRef     `json:"owners,omitempty"` // the newest 16
	Mounts   []Mount       `json:"mounts,omitempty"` // the newest 16
	Liveness LivenessState `json:"liveness"`         // by the newest probe
	EventID  string        `json:"event_id"`         // that named it first
}

// Mount is a resource in somebody's hands over a time.
type Mount struct {
	ResourceID string  `json:"resource_id"`
	Holder     NodeRef `json:"holder"` // Run, Container or Agent
	Mode       Mode    `json:"mode,omitempty"`
	Mount      string  `json:"mount,omitempty"`
	Since      Time    `json:"valid_from"`
	Until      Time    `json:"valid_to,omitzero"` // as is known now
	EventID    string  `json:"event_id"`
}

// Bounds of what is shown with one resource.
const (
	maxShown   = 16
	maxSpanned = 100_000 // spans of one moment that a list reads
)

// TimeQuery asks for what held at a time.
type TimeQuery struct {
	core.Filter        // Agent, Match, Page and Size
	At          Time   // zero means now
	Run         string // mounts of this run only
}

func (d *DAG) when(q *TimeQuery) (time.Time, error) {
	f, err := q.Check()
	q.Filter = f
	if q.At.IsZero() {
		return d.ledger.Clock().Now(), err
	}
	return q.At.at, err
}

// Resources lists the resources that were there at a time, the newest first,
// each with its owners, mounts and liveness of then. q.Kind is a kind of
// resource, q.Agent an owner or holder.
func (d *DAG) Resources(ctx context.Context, tenant string, q TimeQuery) (page core.Page[ResourceAt], err error) {
	at, err := d.when(&q)
	if err != nil {
		return page, err
	}
	if q.Kind != "" && !slices.Contains(resourceKinds(), ResourceKind(q.Kind)) {
		return page, core.Invalid("kind", q.Kind, words(resourceKinds()))
	}
	err = d.view(ctx, tenant, "list the resources", func(r reader) error {
		spans, err := r.spans(spanExists, at)
		if err != nil {
			return err
		}
		held, err := r.holdings(at)
		if err != nil {
			return err
		}
		page, err = pageOf(ctx, d, tenant, q, spans, q.fits, func(s span) (ResourceAt, error) { return r.resourceAt(s, at, held[s.id]) })
		return err
	})
	return page, err
}

// pageOf makes a page of what spans are read as. Where nothing narrows it, only those on
// it are read; what can't be is passed over.
func pageOf[T any](ctx context.Context, d *DAG, tenant string, q TimeQuery, spans []span, fits func(T) bool, read func(span) (T, error)) (core.Page[T], error) {
	g := core.Gather[T]{Filter: q.Filter}
	narrow := q.Kind != "" || q.Agent != "" || q.Run != "" || q.Match != ""
	for _, s := range spans {
		if !narrow && !g.Shows() {
			g.Total++
			continue
		}
		v, err := read(s)
		if err == nil && (!narrow || fits(v)) {
			g.Add(v)
		}
		if err = cmp.Or(d.passOver(tenant, err), ctx.Err()); err != nil {
			return core.Page[T]{}, err
		}
	}
	return g.Result(), nil
}

func (q *TimeQuery) fits(r ResourceAt) bool {
	if q.Kind != "" && (r.Resource == nil || string(r.Resource.Kind) != q.Kind) {
		return false
	}
	if q.Agent != "" && !slices.Contains(r.Owners, NodeRef{TypeAgent, q.Agent}) &&
		!slices.ContainsFunc(r.Mounts, func(m Mount) bool { return m.Holder == NodeRef{TypeAgent, q.Agent} }) {
		return false
	}
	text := r.ID
	if r.Resource != nil {
		text += " " + r.Resource.Name
	}
	return q.Finds(text)
}

// spans lists what held at a time, what began last first.
func (r reader) spans(what byte, at time.Time) ([]span, error) {
	var all []span
	err := r.at(what, at, func(s span) (bool, error) {
		all = append(all, s)
		return len(all) < maxSpanned, nil
	})
	core.Sort(all, func(a, b span) int {
		return cmp.Or(b.from.Compare(a.from), cmp.Compare(b.pos, a.pos), cmp.Compare(b.i, a.i))
	})
	return all, err
}

// resourceAt reads what was known of a resource.
func (r reader) resourceAt(s span, at time.Time, held []span) (ResourceAt, error) {
	out := ResourceAt{ID: s.id, Since: At(s.from), Liveness: LivenessState{Status: LiveUnknown}}
	num, _, err := r.num(nameKey(NodeRef{TypeResource, s.id}))
	if err != nil {
		return out, err
	}
	v, err := r.versionAt(num, at)
	if err != nil {
		return out, err
	}
	if v != nil {
		out.Resource = v.Node.Body.(*Resource)
		if l := out.Resource.Liveness; l != nil {
			out.Liveness = *l
		}
	}
	first, err := r.event(s.pos)
	if err != nil {
		return out, err
	}
	out.EventID = first.Event.EventID
	for _, h := range held {
		x, m, err := r.mount(h.pos, h.i)
		switch {
		case err != nil:
			return out, err
		case x.Type == OwnsResource && len(out.Owners) < maxShown:
			out.Owners = append(out.Owners, x.From)
		case x.Type != OwnsResource && len(out.Mounts) < maxShown:
			out.Mounts = append(out.Mounts, m)
		}
	}
	return out, r.probed(num, at, &out.Liveness)
}

// holdings are the owners and mounts of a time by resource, what began last
// first.
func (r reader) holdings(at time.Time) (map[string][]span, error) {
	all := map[string][]span{}
	for _, what := range []byte{relationCode(OwnsResource), relationCode(MountsResource), spanHeld} {
		spans, err := r.spans(what, at)
		if err != nil {
			return nil, err
		}
		for _, s := range spans {
			if len(all[s.id]) < 3*maxShown {
				all[s.id] = append(all[s.id], s)
			}
		}
	}
	return all, nil
}

// mount reads a lasting edge.
func (r reader) mount(pos uint64, i int) (Edge, Mount, error) {
	edges, err := r.edges(pos)
	if err == nil && i >= len(edges) {
		err = core.Errorf(core.Internal, "event %d has no edge %d", pos, i)
	}
	if err != nil {
		return Edge{}, Mount{}, err
	}
	e, err := r.event(pos)
	if err != nil {
		return Edge{}, Mount{}, err
	}
	until, err := r.ended(pos, i)
	x := edges[i]
	m := Mount{
		ResourceID: x.To.ID, Holder: x.From, Mode: x.Attrs.Mode, Mount: x.Attrs.Mount,
		Since: At(x.Valid.start(e.Event.TS)), EventID: e.Event.EventID,
	}
	if x.Type == AttachedTo {
		m.ResourceID, m.Holder = x.From.ID, x.To
	}
	if !until.IsZero() {
		m.Until = At(until)
	}
	return x, m, err
}

// probed is what the newest probe before a time found, unless the resource was
// stated with a newer one.
func (r reader) probed(num uint64, at time.Time, l *LivenessState) error {
	return probes.Within(r, record.Seq(num), nil, record.Seq(micros(at)+1), true, func(rest record.Parts, _ record.Found[struct{}]) (bool, error) {
		e, err := r.event(record.LastSeq(rest))
		if err != nil {
			return false, err
		}
		if b, ok := e.Event.Body.(*LivenessProbe); ok && e.Event.TS.at.After(l.LastProbe.at) {
			*l = LivenessState{b.Status, e.Event.TS}
		}
		return false, nil
	})
}

// Mounts lists which resources were in whose hands at a time, the newest
// first: runs and containers that mount them, agents that they are attached to.
// q.Agent is a holder, q.Run a run.
func (d *DAG) Mounts(ctx context.Context, tenant string, q TimeQuery) (page core.Page[Mount], err error) {
	at, err := d.when(&q)
	if err != nil {
		return page, err
	}
	fits := func(m Mount) bool {
		return (q.Agent == "" || m.Holder == NodeRef{TypeAgent, q.Agent}) && (q.Run == "" || m.Holder == NodeRef{TypeRun, q.Run}) &&
			q.Finds(m.ResourceID+" "+m.Mount)
	}
	err = d.view(ctx, tenant, "list the mounts", func(r reader) error {
		all, err := r.mountsAt(at)
		if err != nil {
			return err
		}
		page, err = pageOf(ctx, d, tenant, q, all, fits, func(s span) (Mount, error) {
			_, m, err := r.mount(s.pos, s.i)
			return m, err
		})
		return err
	})
	return page, err
}

// mountsAt are the mounts of a time, and what was attached to agents.
func (r reader) mountsAt(at time.Time) ([]span, error) {
	all, err := r.spans(relationCode(MountsResource), at)
	if err != nil {
		return nil, err
	}
	attached, err := r.spans(spanHeld, at)
	return append(all, attached...), err
}

// Liveness is what the newest probe of a resource found.
func (d *DAG) Liveness(ctx context.Context, tenant, resource string) (LivenessState, error) {
	l := LivenessState{Status: LiveUnknown}
	err := d.view(ctx, tenant, "read a probe", func(r reader) error {
		num, _, err := r.num(nameKey(NodeRef{TypeResource, resource}))
		if err != nil || num == 0 {
			return err
		}
		return r.probed(num, d.ledger.Clock().Now(), &l)
	})
	return l, err
}
