package env

import (
	"fmt"
	"reflect"
	"slices"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

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
