package dag

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// ResourceAt is a resource as it was at a time.
type ResourceAt struct {
	ID       string        `json:"id"`
	Resource *Resource     `json:"resource,omitzero"` // as stated by then; absent when it was only named
	Since    Time          `json:"valid_from"`
	Owners   []NodeRef     `json:"owners,omitempty"` // the newest 16
	Mounts   []Mount       `json:"mounts,omitempty"` // the newest 16
	Liveness LivenessState `json:"liveness"`         // of the newest of its last 64 probes
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
	maxLooked  = 64
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
func (d *DAG) Resources(ctx context.Context, tenant string, q TimeQuery) (core.Page[ResourceAt], error) {
	var none core.Page[ResourceAt]
	at, err := d.when(&q)
	if err != nil {
		return none, err
	}
	if q.Kind != "" && !slices.Contains(resourceKinds(), ResourceKind(q.Kind)) {
		return none, core.Invalid("kind", q.Kind, words(resourceKinds()))
	}
	var items []ResourceAt
	total := 0
	err = d.view(ctx, tenant, "list the resources", func(r reader) error {
		spans, err := r.spans(spanExists, at)
		if err != nil {
			return err
		}
		narrow := q.Kind != "" || q.Agent != "" || q.Match != ""
		for n, s := range spans {
			if !narrow && (n < q.Offset() || len(items) >= q.Size) {
				total++
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			res, err := r.resourceAt(s, at)
			if err != nil {
				return err
			}
			if narrow && !q.fits(res) {
				continue
			}
			if total++; total > q.Offset() && len(items) < q.Size {
				items = append(items, res)
			}
		}
		return nil
	})
	if err != nil {
		return none, err
	}
	return core.NewPage(items, q.Filter, total), nil
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
	return strings.Contains(strings.ToLower(text), strings.ToLower(q.Match))
}

// spans lists what held at a time, what began last first.
func (r reader) spans(what byte, at time.Time) ([]span, error) {
	var all []span
	err := r.at(what, at, func(s span) (bool, error) {
		all = append(all, s)
		return len(all) < maxSpanned, nil
	})
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(b.from.Compare(a.from), cmp.Compare(b.pos, a.pos), cmp.Compare(b.i, a.i))
	})
	return all, err
}

// resourceAt reads what was known of a resource.
func (r reader) resourceAt(s span, at time.Time) (ResourceAt, error) {
	out := ResourceAt{ID: s.id, Since: At(s.from), Liveness: LivenessState{Status: LiveUnknown}}
	num, _, err := r.num(nameKey(NodeRef{TypeResource, s.id}))
	if err != nil {
		return out, err
	}
	v, err := r.versionAt(num, ^uint64(0), at)
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
	err = r.held(bIn, num, OwnsResource, at, func(x Edge, _ Mount) { out.Owners = append(out.Owners, x.From) })
	if err != nil {
		return out, err
	}
	mount := func(_ Edge, m Mount) { out.Mounts = append(out.Mounts, m) }
	if err := r.held(bIn, num, MountsResource, at, mount); err != nil {
		return out, err
	}
	err = r.held(bOut, num, AttachedTo, at, func(x Edge, m Mount) {
		if x.To.Type == TypeAgent { // that to a run is its mount
			mount(x, m)
		}
	})
	if err != nil {
		return out, err
	}
	return out, r.probed(num, at, &out.Liveness)
}

// held calls fn for the lasting edges of a resource that held at a time.
func (r reader) held(b store.Bucket, num uint64, t EdgeType, at time.Time, fn func(Edge, Mount)) error {
	looked, shown := 0, 0
	return r.scan(b, append(key(num), relationCode(t)), nil, nil, true, func(rest, _ []byte) (bool, error) {
		x, m, err := r.mount(get64(rest), int(binary.BigEndian.Uint16(rest[8:])))
		if err != nil {
			return false, err
		}
		if !m.Since.at.After(at) && (m.Until.IsZero() || m.Until.at.After(at)) {
			fn(x, m)
			shown++
		}
		looked++
		return looked < maxLooked && shown < maxShown, nil
	})
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
	looked := 0
	return r.scan(bIn, append(key(num), relationCode(EventConsumes)), nil, nil, true, func(rest, _ []byte) (bool, error) {
		e, err := r.event(get64(rest))
		if err != nil {
			return false, err
		}
		if b, ok := e.Event.Body.(*LivenessProbe); ok && !e.Event.TS.at.After(at) {
			if e.Event.TS.at.After(l.LastProbe.at) {
				*l = LivenessState{b.Status, e.Event.TS}
			}
			return false, nil
		}
		looked++
		return looked < maxLooked, nil
	})
}

// Mounts lists which resources were in whose hands at a time, the newest
// first: runs and containers that mount them, agents that they are attached to.
// q.Agent is a holder, q.Run a run.
func (d *DAG) Mounts(ctx context.Context, tenant string, q TimeQuery) (core.Page[Mount], error) {
	at, err := d.when(&q)
	if err != nil {
		return core.Page[Mount]{}, err
	}
	var items []Mount
	total := 0
	err = d.view(ctx, tenant, "list the mounts", func(r reader) error {
		all, err := r.mountsAt(at)
		if err != nil {
			return err
		}
		for _, s := range all {
			narrow := q.Agent != "" || q.Run != "" || q.Match != ""
			if !narrow && (total < q.Offset() || len(items) >= q.Size) {
				total++
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			_, m, err := r.mount(s.pos, s.i)
			if err != nil {
				return err
			}
			if q.Agent != "" && m.Holder != (NodeRef{TypeAgent, q.Agent}) || q.Run != "" && m.Holder != (NodeRef{TypeRun, q.Run}) ||
				!strings.Contains(strings.ToLower(m.ResourceID+" "+m.Mount), strings.ToLower(q.Match)) {
				continue
			}
			if total++; total > q.Offset() && len(items) < q.Size {
				items = append(items, m)
			}
		}
		return nil
	})
	if err != nil {
		return core.Page[Mount]{}, err
	}
	return core.NewPage(items, q.Filter, total), nil
}

// mountsAt are the mounts of a time, and what was attached to agents.
func (r reader) mountsAt(at time.Time) ([]span, error) {
	all, err := r.spans(relationCode(MountsResource), at)
	if err != nil {
		return nil, err
	}
	attached, err := r.spans(relationCode(AttachedTo), at)
	if err != nil {
		return nil, err
	}
	for _, s := range attached {
		edges, err := r.edges(s.pos)
		if err != nil {
			return nil, err
		}
		if s.i < len(edges) && edges[s.i].To.Type == TypeAgent {
			all = append(all, s)
		}
	}
	return all, nil
}
