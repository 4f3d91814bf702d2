package env

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// geometry answers what a merge asks of the kernel.
type geometry struct {
	call     *call
	find     recipes
	made     []model.Shape
	compared int
}

func (c *call) geometry(source, target *model.Workspace) *geometry {
	return &geometry{call: c, find: in(target, source)}
}

// Overlap is the volume that two solids share.
func (g *geometry) Overlap(a, b model.Entity) (float64, error) {
	g.compared++
	g.call.stage.at(50, fmt.Sprintf("comparing solids: %d pairs", g.compared))
	o, err := g.call.overlap(g.find.with(nil, g.made...), a.Shape, b.Shape)
	if err != nil || o == nil {
		return 0, err
	}
	return o.Volume, nil
}

// Build tells the properties of the solid that a new shape makes.
func (g *geometry) Build(s model.Shape) (core.Raw, error) {
	if err := g.call.supported(s.Op); err != nil {
		return nil, err
	}
	g.made = append(g.made, s)
	facts, err := g.call.env.bench.build(g.call.ctx, g.find.with(nil, g.made...), s.Hash)
	if err != nil {
		return nil, err
	}
	facts.Operation = s.Op
	return core.Encode(facts)
}

type merge struct {
	Source      string `json:"source_workspace_id"`
	Target      string `json:"target_workspace_id"`
	SourceShort string `json:"source_workspace"`
	TargetShort string `json:"target_workspace"`
}

// sides finds the two workspaces of a merge.
func (c *call) sides(from, to string) (source, target *model.Workspace, err error) {
	if source, err = c.env.workspace("source_workspace_id", from); err != nil {
		return nil, nil, err
	}
	if target, err = c.env.workspace("target_workspace_id", to); err != nil {
		return nil, nil, err
	}
	if source == target {
		return nil, nil, Refuse(OperationInvalid, "source_workspace_id", from, "a workspace is not merged into itself", "give two workspaces")
	}
	return source, target, nil
}

func (p merge) ids() (from, to string) {
	return cmp.Or(p.Source, p.SourceShort), cmp.Or(p.Target, p.TargetShort)
}

func (p merge) check() error {
	from, to := p.ids()
	switch {
	case from == "":
		return Refuse(InvalidParameter, "source_workspace_id", nil, "source_workspace_id is missing", "give the id of a workspace")
	case to == "":
		return Refuse(InvalidParameter, "target_workspace_id", nil, "target_workspace_id is missing", "give the id of a workspace")
	}
	return nil
}

// merge takes over what does not contradict, and leaves the rest open.
func (c *call) merge(p merge) (any, error) {
	source, target, err := c.sides(p.ids())
	if err != nil {
		return nil, err
	}
	out, err := model.Merge(source, target, c.geometry(source, target))
	if err != nil {
		return nil, err
	}
	return c.settle(source, target, out)
}

type resolve struct {
	EntityID string   `json:"entity_id" need:""`
	Source   string   `json:"source_workspace_id" need:""`
	Target   string   `json:"target_workspace_id" need:""`
	Strategy string   `json:"strategy" need:"" is:"keep_source, keep_target or manual_merge"`
	Merged   core.Raw `json:"merged_properties"`
}

func (c *call) resolve(p resolve) (any, error) {
	source, target, err := c.sides(p.Source, p.Target)
	if err != nil {
		return nil, err
	}
	var open []string
	for _, k := range target.Conflicts() {
		if k.Source == p.Source && !slices.Contains(open, k.EntityID) {
			open = append(open, k.EntityID)
		}
	}
	if !slices.Contains(open, p.EntityID) {
		suggestion := "no conflict is open between them; merge first"
		if len(open) > 0 {
			suggestion = "give one of " + strings.Join(open[:min(len(open), 20)], ", ")
		}
		return nil, Refuse(EntityNotFound, "entity_id", p.EntityID, fmt.Sprintf("no conflict about %v is open", shown(p.EntityID)), suggestion)
	}
	merged, err := c.byHand(source, target, p)
	if err != nil {
		return nil, err
	}
	out, err := model.Resolve(source, target, model.Resolution{
		EntityID: p.EntityID, Strategy: model.Strategy(p.Strategy), Merged: merged,
	}, c.geometry(source, target))
	if err != nil {
		return nil, err
	}
	return c.settle(source, target, out)
}

// settle commits what a merge or a decision works out.
func (c *call) settle(source, target *model.Workspace, out model.Outcome) (any, error) {
	if !out.Change.Empty() {
		if err := c.commitTo(target, out.Change); err != nil {
			return nil, err
		}
	}
	result := "success"
	if len(out.Conflicts) > 0 {
		result = "has_conflicts"
	}
	list := func(ids []string) []string { return append([]string{}, ids...) }
	return map[string]any{
		"merge_result": result, "source_workspace_id": source.Record().ID, "target_workspace_id": target.Record().ID,
		"entities_added": list(out.Added), "entities_updated": list(out.Updated), "entities_removed": list(out.Removed),
		"conflicts": append([]model.Conflict{}, out.Conflicts...),
	}, nil
}

// byHand are the properties of an entity that a manual merge writes down: for a
// curve what is given takes the place of what the target has, or the source
// where the target has none, and what follows from it is computed. How solids
// and entities that are both kept are merged goes on as it is.
func (c *call) byHand(source, target *model.Workspace, p resolve) (core.Raw, error) {
	e, inTarget := target.Entity(p.EntityID)
	other, inSource := source.Entity(p.EntityID)
	if !inTarget {
		e = other
	}
	given := map[string]core.Raw{}
	if p.Strategy != string(model.ManualMerge) || core.Decode(p.Merged, &given) != nil || e.Type == model.Solid || given["operation"] != nil {
		return p.Merged, nil
	}
	if inTarget && inSource && e.Type != other.Type {
		return nil, Refuse(InvalidParameter, "merged_properties", shown(p.Merged), fmt.Sprintf("%s is a %s in one workspace and a %s in the other", p.EntityID, e.Type, other.Type), `give {"operation":"keep_both"}, or the strategy keep_source or keep_target`)
	}
	if e.Type == model.Constraint {
		return nil, Refuse(InvalidParameter, "merged_properties", shown(p.Merged), "a constraint has nothing to be merged by hand", `give the strategy keep_source or keep_target, or {"operation":"keep_both"}`)
	}
	to, err := curveOf(e)
	if err != nil {
		return nil, err
	}
	for _, name := range computed(e.Type) {
		delete(given, name)
	}
	var change updateEntity
	known := slices.DeleteFunc(fields(reflect.TypeFor[updateEntity]()), func(f field) bool { return f.name == "entity_id" })
	if wrong, _ := decodeParams(core.MustEncode(given), known, reflect.ValueOf(&change).Elem(), reflect.ValueOf(&Common{}).Elem(), false); len(wrong) > 0 {
		return nil, wrong[0]
	}
	here := c.ws // names of places are of the target
	c.ws = target
	err = c.change(&to, change)
	if c.ws = here; err != nil {
		return nil, err
	}
	if err := to.check(); err != nil {
		return nil, err
	}
	return to.properties(), nil
}

// computed are the properties of a curve that follow from the others. They are
// told with an entity, and may be given back.
func computed(t model.EntityType) []string {
	switch t {
	case model.Line:
		return []string{"length", "direction_vector"}
	case model.Circle:
		return []string{"area", "circumference"}
	case model.Arc:
		return []string{"x_axis", "start", "end", "length"}
	}
	return nil
}
