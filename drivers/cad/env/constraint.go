package env

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// conflict refuses constraints that can't hold together; one of them may be the
// one asked for.
func conflict(names []string, asked string) *Error {
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == asked })
	list := strings.Join(others, ", ")
	message := "the constraints can't hold together: " + list
	if asked != "" {
		message = "the constraint can't hold together with " + list
	}
	suggestion := "change or remove one of " + list
	if len(others) == 0 {
		message, suggestion = "the constraint can't hold on these entities", "give entities that can take it"
	}
	e := Refuse(ConstraintConflict, "constraint_type", nil, message+"; nothing has changed", suggestion)
	e.Data.Conflicts = others
	return e
}

type applyConstraint struct {
	EntityID       string               `json:"entity_id" is:"of the constraint itself"`
	ConstraintType string               `json:"constraint_type" need:"" is:"fixed, coincident, concentric, horizontal, vertical, parallel, perpendicular, angle, tangent, distance, radius, equal, midpoint or symmetric"`
	EntityIDs      []string             `json:"entity_ids" need:"" is:"1 to 3, or their .start, .end or .center"`
	Parameters     constraintParameters `json:"parameters"`
}

func (p applyConstraint) check() error {
	if !slices.Contains(sketch.Types(), sketch.Type(p.ConstraintType)) {
		all := core.Map(sketch.Types(), func(t sketch.Type) string { return string(t) })
		return Invalid("constraint_type", p.ConstraintType, strings.Join(all, ", "))
	}
	if len(p.EntityIDs) < 1 || len(p.EntityIDs) > 3 {
		return Invalid("entity_ids", len(p.EntityIDs), "1 to 3 entities, or their .start, .end or .center")
	}
	if t := p.Parameters.Tolerance; t != nil && !(*t > 0 && *t <= 10) {
		return Invalid("parameters.tolerance", *t, "above 0, up to 10 mm or radians")
	}
	return nil
}

func (c *call) applyConstraint(p applyConstraint) (any, error) {
	for i, ref := range p.EntityIDs {
		id, part := split(ref)
		e, err := c.entity("entity_ids", id)
		if err != nil {
			return nil, err
		}
		if e.Type == model.Solid || e.Type == model.Constraint {
			return nil, Refuse(InvalidConstraint, "entity_ids", ref, fmt.Sprintf("%s is a %s", id, e.Type), "constraints hold points, lines, circles and arcs")
		}
		one, err := curveOf(e)
		if err != nil {
			return nil, err
		}
		if _, ok := one.part(part); part != "" && !ok {
			return nil, Refuse(InvalidConstraint, "entity_ids", ref, fmt.Sprintf("a %s has no .%s", e.Type, part), "name .start or .end of a line or arc, .center of a circle or arc")
		}
		if slices.Contains(p.EntityIDs[:i], ref) {
			return nil, Refuse(InvalidConstraint, "entity_ids", ref, "an entity is not held to itself", "give different entities")
		}
	}
	id, err := c.newID(p.EntityID, model.Constraint)
	if err != nil {
		return nil, err
	}
	properties := constraintProperties{Type: sketch.Type(p.ConstraintType), Entities: p.EntityIDs, Parameters: p.Parameters}
	value, err := properties.value()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, ref := range p.EntityIDs {
		name, _ := split(ref)
		ids = append(ids, name)
	}
	curves, constraints, err := c.connected(ids...)
	if err != nil {
		return nil, err
	}
	d, err := draw(curves, constraints, nil)
	if err != nil {
		return nil, err
	}
	after, err := d.sketch.Apply(c.ctx, sketch.Constraint{ID: id, Type: properties.Type, Entities: p.EntityIDs, Value: value})
	switch {
	case c.ctx.Err() != nil:
		return nil, ended(c.ctx)
	case errors.Is(err, core.Kind(core.Conflict)):
		return nil, conflict(after.Conflicts, id)
	case err != nil:
		return nil, Refused(err, InvalidConstraint)
	}
	moved, err := d.moved()
	if err != nil {
		return nil, err
	}
	made := model.Entity{ID: id, Type: model.Constraint, Properties: core.MustEncode(properties)}
	if err := c.commit(model.Change{Put: append(moved, made)}); err != nil {
		return nil, err
	}
	return map[string]any{
		"constraint_id": id, "entity_id": id, "constraint_type": properties.Type, "entity_ids": p.EntityIDs, "workspace_id": c.ws.Record().ID,
		"satisfaction_status": "satisfied", "degrees_of_freedom": after.DegreesOfFreedom,
		"degrees_of_freedom_removed": after.Removed,
		"redundant":                  constraintsOf(after.Redundant, d, id), "moved": idsOf(moved),
	}, nil
}

// constraintsOf keeps the names of constraints: an arc may be redundant with
// itself.
func constraintsOf(names []string, d *drawing, also string) []string {
	out := []string{}
	for _, n := range names {
		if n == also || slices.ContainsFunc(d.constraints, func(e model.Entity) bool { return e.ID == n }) {
			out = append(out, n)
		}
	}
	return out
}

func idsOf(all []model.Entity) []string {
	return append([]string{}, core.Map(all, func(e model.Entity) string { return e.ID })...)
}

type removeConstraint struct {
	ConstraintID string `json:"constraint_id" need:""`
}

func (c *call) removeConstraint(p removeConstraint) (any, error) {
	e, err := c.entity("constraint_id", p.ConstraintID)
	if err != nil {
		return nil, err
	}
	if e.Type != model.Constraint {
		return nil, Refuse(InvalidConstraint, "constraint_id", p.ConstraintID, fmt.Sprintf("%s is a %s", e.ID, e.Type), "entity.delete removes it")
	}
	if err := c.commit(model.Change{Removed: []string{e.ID}}); err != nil {
		return nil, err
	}
	return map[string]any{"constraint_id": e.ID, "removed": []string{e.ID}}, nil
}

type constraintStatus struct {
	ConstraintID string `json:"constraint_id"`
	EntityID     string `json:"entity_id"`
	// DOF also counts the degrees of freedom of all that hangs together, and
	// names redundant and conflicting constraints.
	DOF bool `json:"include_dof_analysis"`
}

// held is what constraint.status tells of one constraint.
type held struct {
	ID       string      `json:"constraint_id"`
	Type     sketch.Type `json:"constraint_type"`
	Entities []string    `json:"entity_ids"`
	Status   string      `json:"satisfaction_status"` // satisfied or violated
	Error    float64     `json:"error"`               // mm or radians
}

// freedom is the analysis of the degrees of freedom.
type freedom struct {
	Freedom     int      `json:"degrees_of_freedom"`
	Constrained bool     `json:"fully_constrained"`
	Redundant   []string `json:"redundant"`
	Conflicts   []string `json:"conflicts"`
}

func (c *call) constraintStatus(p constraintStatus) (any, error) {
	var groups [][]string
	switch {
	case p.ConstraintID != "" && p.EntityID != "":
		return nil, Refuse(InvalidParameter, "entity_id", p.EntityID, "constraint_id and entity_id are two questions", "give one of them, or neither for all constraints")
	case p.ConstraintID != "":
		e, err := c.entity("constraint_id", p.ConstraintID)
		if err != nil {
			return nil, err
		}
		if e.Type != model.Constraint {
			return nil, Refuse(InvalidConstraint, "constraint_id", e.ID, fmt.Sprintf("%s is a %s", e.ID, e.Type), "give entity_id instead")
		}
		properties, err := constraintOf(e)
		if err != nil {
			return nil, err
		}
		id, _ := split(properties.Entities[0])
		groups = [][]string{{id}}
	case p.EntityID != "":
		e, err := c.entity("entity_id", p.EntityID)
		if err != nil {
			return nil, err
		}
		if _, err := curveOf(e); err != nil {
			return nil, err
		}
		groups = [][]string{{e.ID}}
	default:
		for e := range c.ws.All() {
			if e.Type != model.Solid && e.Type != model.Constraint {
				groups = append(groups, []string{e.ID})
			}
		}
	}
	list := []held{}
	analysis := freedom{Redundant: []string{}, Conflicts: []string{}}
	seen := map[string]bool{}
	for _, g := range groups {
		if seen[g[0]] {
			continue
		}
		if err := c.group(p, g[0], seen, &list, &analysis); err != nil {
			return nil, err
		}
	}
	analysis.Constrained = analysis.Freedom == 0
	out := map[string]any{"constraints": list, "total_count": len(list), "workspace_id": c.ws.Record().ID}
	if len(list) == 1 && p.ConstraintID != "" {
		out["constraint_id"], out["satisfaction_status"] = list[0].ID, list[0].Status
	}
	if p.DOF {
		out["dof_analysis"] = analysis
	}
	return out, nil
}

// loose are the degrees of freedom of a curve without constraints.
var loose = map[model.EntityType]int{model.Point: 2, model.Line: 4, model.Circle: 3, model.Arc: 5}

// group adds what hangs together with one curve.
func (c *call) group(p constraintStatus, id string, seen map[string]bool, list *[]held, analysis *freedom) error {
	if len(c.ws.Constraints(id)) == 0 {
		e, _ := c.ws.Entity(id)
		analysis.Freedom += loose[e.Type]
		return nil
	}
	curves, constraints, err := c.connected(id)
	if err != nil {
		return err
	}
	for _, e := range curves {
		seen[e.ID] = true
	}
	d, err := draw(curves, constraints, nil)
	if err != nil {
		return err
	}
	for _, e := range constraints {
		properties, err := constraintOf(e)
		if err != nil {
			return err
		}
		off, err := d.sketch.Error(e.ID)
		if err != nil {
			return err
		}
		one := held{ID: e.ID, Type: properties.Type, Entities: properties.Entities, Status: "satisfied", Error: off}
		if off > properties.tolerance() {
			one.Status = "violated"
		}
		about := p.ConstraintID == "" && p.EntityID == "" || e.ID == p.ConstraintID
		for _, ref := range properties.Entities {
			name, _ := split(ref)
			about = about || p.EntityID != "" && name == p.EntityID
		}
		if about {
			*list = append(*list, one)
		}
	}
	if !p.DOF {
		return nil
	}
	report, err := d.sketch.Solve(c.ctx)
	if err != nil {
		if c.ctx.Err() != nil {
			return ended(c.ctx)
		}
		return Refused(err, InvalidConstraint)
	}
	analysis.Freedom += report.DegreesOfFreedom
	analysis.Redundant = append(analysis.Redundant, constraintsOf(report.Redundant, d, "")...)
	analysis.Conflicts = append(analysis.Conflicts, constraintsOf(report.Conflicts, d, "")...)
	return nil
}
