package resource

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// Choice is what a fork does with one resource.
type Choice struct {
	Mode dag.Plan `json:"mode"` // keep, snapshot, discard
	// KeptBy is the branch that keeps it, with keep: the one forked from, or the
	// fork. "" is both where the resource can be shared, else the one forked from.
	KeptBy string `json:"kept_by,omitempty"`
}

// Part is one resource of a fork: what can be done with it, and what is.
type Part struct {
	Resource dag.Resource        `json:"resource"`
	Hold     Hold                `json:"hold"`
	Choice   `json:",embed"`     // proposed, or as planned
	Allowed  []dag.Plan          `json:"allowed"`
	Why      map[dag.Plan]string `json:"why,omitempty"` // why a mode is not allowed
	// Of mode snapshot: the one that is used, "" for one to be taken now.
	SnapshotRef string   `json:"snapshot_ref,omitempty"`
	SnapshotAt  dag.Time `json:"snapshot_at,omitzero"`
	Exact       bool     `json:"exact"` // its state is that at the event
	Note        string   `json:"note"`  // what the fork gets, for people
	Dest        string   `json:"dest,omitempty"`

	managed bool // it is looked after here
}

// plans are all modes.
func plans() []dag.Plan { return []dag.Plan{dag.PlanKeep, dag.PlanSnapshot, dag.PlanDiscard} }

// rules fills in what the model allows: what is imperative, or can't be
// restored, is kept by one branch, snapshotted where it can be, or discarded.
func (p *Part) rules() {
	p.Allowed, p.Why = nil, map[dag.Plan]string{}
	for _, mode := range plans() {
		why := ""
		if mode == dag.PlanSnapshot && !p.Resource.Can(dag.CanSnapshot) {
			why = "it has not the capability snapshot"
		} else if mode == dag.PlanSnapshot && !p.managed {
			why = "nothing here looks after it"
		}
		if why != "" {
			p.Why[mode] = why
			continue
		}
		p.Allowed = append(p.Allowed, mode)
	}
}

// makes reports whether the fork gets a resource of its own of it.
func (p *Part) makes() bool {
	return p.Mode == dag.PlanSnapshot && p.Resource.Restorable() && p.Resource.Can(dag.CanFork)
}

// choose applies what somebody planned for the part.
func (p *Part) choose(c Choice, from, to string) error {
	field := "plan." + p.Resource.ID
	if !slices.Contains(p.Allowed, c.Mode) {
		words := core.Map(p.Allowed, func(m dag.Plan) string { return string(m) })
		allowed := strings.Join(words, ", ")
		if why := p.Why[c.Mode]; why != "" {
			allowed += fmt.Sprintf(" (%s)", why)
		}
		return core.Invalid(field, c.Mode, allowed)
	}
	switch {
	case c.KeptBy != "" && c.Mode != dag.PlanKeep:
		return core.Errorf(core.InvalidInput, "%s: kept_by %q is given, but the mode is %s; allowed: with keep", field, c.KeptBy, c.Mode).With("field", field)
	case c.KeptBy != "" && c.KeptBy != from && c.KeptBy != to:
		return core.Invalid(field+".kept_by", c.KeptBy, from+", "+to)
	case c.Mode == dag.PlanKeep && c.KeptBy == "" && !p.shared():
		c.KeptBy = from
	}
	p.Choice = c
	return nil
}

// shared reports whether both branches may have it.
func (p *Part) shared() bool {
	return p.Resource.Can(dag.CanShare) && p.Resource.Restorable() || p.Hold.Mode == dag.ReadOnly
}

// has reports whether the fork has the resource itself.
func (p *Part) has(to string) bool {
	return p.Mode == dag.PlanKeep && (p.KeptBy == "" || p.KeptBy == to)
}

// lost reports whether the agent that is forked loses it.
func (p *Part) lost(to string) bool { return p.Mode == dag.PlanKeep && p.KeptBy == to }

// apply holds a plan against the rules and takes it over. A resource that it
// does not name stays as proposed; a name that is no resource's is refused.
func apply(parts []Part, plan map[string]Choice, from, to string) error {
	for _, name := range slices.Sorted(maps.Keys(plan)) {
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Resource.ID == name || p.Resource.Name == name })
		if i < 0 {
			ids := core.Map(parts, func(p Part) string { return p.Resource.ID })
			return core.Invalid("plan", name, "a resource that the agent had at the event: "+cmp.Or(strings.Join(ids, ", "), "it had none"))
		}
		if err := parts[i].choose(plan[name], from, to); err != nil {
			return err
		}
	}
	return nil
}
