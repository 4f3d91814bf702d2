package env

import (
	"fmt"
	"reflect"
	"slices"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/engine/cad/model"
)

type updateEntity struct {
	EntityID    string   `json:"entity_id" need:""`
	Coordinates *Vec     `json:"coordinates"`
	Start       *Place   `json:"start"`
	End         *Place   `json:"end"`
	Center      *Place   `json:"center"`
	Radius      *float64 `json:"radius"`
	StartAngle  *float64 `json:"start_angle"`
	EndAngle    *float64 `json:"end_angle"`
	Normal      *Vec     `json:"normal"`
}

// updateEntity changes a curve and keeps its id. Where constraints hold it, it
// and what hangs together with it move until they hold again.
func (c *call) updateEntity(p updateEntity) (any, error) {
	e, err := c.entity("entity_id", p.EntityID)
	if err != nil {
		return nil, err
	}
	to, err := curveOf(e)
	if err != nil {
		return nil, err
	}
	old := to
	if err := c.change(&to, p); err != nil {
		return nil, err
	}
	if err := to.check(); err != nil {
		return nil, err
	}
	if to == old {
		return nil, Refuse(OperationInvalid, "entity_id", e.ID, "nothing of the entity changes", "give what shall be different")
	}
	e.Properties = to.properties()
	put := []model.Entity{e}
	if len(c.ws.Constraints(e.ID)) > 0 {
		if put, err = c.resettled(e.ID, to); err != nil {
			return nil, err
		}
		if len(put) == 0 {
			return nil, Refuse(ConstraintConflict, "entity_id", e.ID, "its constraints bring the entity back to where it was; nothing has changed", "change or remove one of its constraints")
		}
	}
	out, err := c.put(model.Change{Put: put}, e.ID)
	if err != nil {
		return nil, err
	}
	out["moved"] = idsOf(put)
	return out, nil
}

// resettled solves the sketch of a curve from its new place on.
func (c *call) resettled(id string, to curve) ([]model.Entity, error) {
	curves, constraints, err := c.connected(id)
	if err != nil {
		return nil, err
	}
	for _, e := range constraints {
		p, err := constraintOf(e)
		if err != nil {
			return nil, err
		}
		if name, _ := split(p.Entities[0]); p.Type == sketch.Fixed && name == id {
			return nil, conflict([]string{e.ID}, "")
		}
	}
	d, err := draw(curves, constraints, map[string]curve{id: to})
	if err != nil {
		return nil, err
	}
	if _, err := d.solve(c.ctx); err != nil {
		return nil, err
	}
	return d.moved()
}

// has are the params of a curve's definition.
var has = map[model.EntityType][]string{
	model.Point: {"coordinates"}, model.Line: {"start", "end"}, model.Circle: {"center", "radius", "normal"},
	model.Arc: {"center", "radius", "normal", "start_angle", "end_angle"},
}

// change sets what was given, each for the types that have it.
func (c *call) change(to *curve, p updateEntity) error {
	for _, f := range fields(reflect.TypeOf(p)) {
		if !f.required && !reflect.ValueOf(p).FieldByIndex(f.index).IsNil() && !slices.Contains(has[to.kind], f.name) {
			return Refuse(InvalidParameter, f.name, nil, fmt.Sprintf("a %s has no %s", to.kind, f.name), "leave it out")
		}
	}
	if p.Coordinates != nil {
		to.at = *p.Coordinates
	}
	for _, f := range []struct {
		name  string
		given *Place
		into  *[3]float64
	}{{"start", p.Start, &to.at}, {"end", p.End, &to.end}, {"center", p.Center, &to.at}} {
		if f.given == nil {
			continue
		}
		at, err := c.where(f.name, *f.given)
		if err != nil {
			return err
		}
		*f.into = at
	}
	for _, f := range []struct{ given, into *float64 }{{p.Radius, &to.radius}, {p.StartAngle, &to.from}, {p.EndAngle, &to.to}} {
		if f.given != nil {
			*f.into = *f.given
		}
	}
	if p.Normal != nil {
		return to.turned(p.Normal)
	}
	return nil
}

type deleteEntity struct {
	EntityID  string   `json:"entity_id"`
	EntityIDs []string `json:"entity_ids"`
	// Constraints also deletes the constraints that hold what goes; otherwise
	// a constraint keeps its entities.
	Constraints bool `json:"with_constraints"`
}

func (c *call) deleteEntity(p deleteEntity) (any, error) {
	ids, err := one(p.EntityID, p.EntityIDs)
	if err != nil {
		return nil, err
	}
	removed := []string{}
	for _, id := range ids {
		e, err := c.entity("entity_ids", id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(removed, e.ID) {
			removed = append(removed, e.ID)
		}
	}
	for _, id := range slices.Clone(removed) {
		for _, name := range c.ws.Constraints(id) {
			switch {
			case slices.Contains(removed, name):
			case p.Constraints:
				removed = append(removed, name)
			default:
				return nil, Refuse(OperationInvalid, "entity_id", id, fmt.Sprintf("%s is held by %s", id, name), "delete the constraint first, or give with_constraints true")
			}
		}
	}
	if err := c.commit(model.Change{Removed: removed}); err != nil {
		return nil, err
	}
	return map[string]any{"removed": removed, "workspace_id": c.ws.Record().ID}, nil
}

// one joins the param for one entity and the param for several.
func one(id string, ids []string) ([]string, error) {
	switch {
	case id != "" && ids != nil:
		return nil, Refuse(InvalidParameter, "entity_id", id, "entity_id and entity_ids say the same", "give one of the two")
	case id != "":
		return []string{id}, nil
	case len(ids) == 0:
		return nil, Refuse(InvalidParameter, "entity_ids", nil, "entity_ids is missing", "give the ids of one entity or more")
	case len(ids) > 10_000:
		return nil, Invalid("entity_ids", len(ids), "1 to 10000 ids")
	}
	return ids, nil
}
