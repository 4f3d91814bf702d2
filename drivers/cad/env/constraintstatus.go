package env

import (
	"fmt"

	"swarmdeck/drivers/cad/sketch"
	"swarmdeck/engine/cad/model"
)

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
