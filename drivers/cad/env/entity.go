package env

import (
	"cmp"
	"fmt"
	"slices"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// entity finds an entity of the call's workspace.
func (c *call) entity(field, id string) (model.Entity, error) {
	if e, ok := c.ws.Entity(id); ok {
		return e, nil
	}
	var ids []string
	for e := range c.ws.All() {
		if ids = append(ids, e.ID); len(ids) == 1000 {
			break
		}
	}
	suggestion := "entity.list lists what there is"
	if near := nearest(id, ids); near != "" {
		suggestion = "did you mean " + near + "? " + suggestion
	}
	return model.Entity{}, Refuse(EntityNotFound, field, id, fmt.Sprintf("workspace %s has no entity %v", c.ws.Record().ID, shown(id)), suggestion)
}

// newID checks a chosen id or finds a free one.
func (c *call) newID(id string, t model.EntityType) (string, error) {
	if id == "" {
		return c.ws.NextID(t), nil
	}
	if err := model.CheckID("entity_id", id); err != nil {
		return "", err
	}
	if e, taken := c.ws.Entity(id); taken {
		return "", Refuse(WorkspaceConflict, "entity_id", id, fmt.Sprintf("%s is taken by a %s", id, e.Type), "give another entity_id or leave it out")
	}
	return id, nil
}

// where is the place that a param names.
func (c *call) where(field string, p Place) ([3]float64, error) {
	if p.Ref == "" {
		return p.At, nil
	}
	id, part := split(p.Ref)
	e, err := c.entity(field, id)
	if err != nil {
		return [3]float64{}, err
	}
	curve, err := curveOf(e)
	if err != nil {
		return [3]float64{}, err
	}
	at, ok := curve.part(part)
	if !ok {
		return at, Refuse(InvalidParameter, field, p.Ref, fmt.Sprintf("%s is no place of a %s", p.Ref, e.Type), "give a point, LINE.start, LINE.end, CIRCLE.center, ARC.start, ARC.end or ARC.center")
	}
	return at, nil
}

// told is an entity as the answer to its making: its properties beside its id.
func told(e model.Entity) (map[string]any, error) {
	out := map[string]any{}
	var properties map[string]core.Raw
	if err := core.DecodeStored(e.Properties, &properties); err != nil {
		return nil, fmt.Errorf("entity %s: read its properties: %w", e.ID, err)
	}
	for name, value := range properties {
		out[name] = value
	}
	out["entity_id"], out["entity_type"], out["workspace_id"] = e.ID, e.Type, e.WorkspaceID
	return out, nil
}

// addCurve makes an entity of a curve.
func (c *call) addCurve(id string, of curve) (any, error) {
	if err := of.check(); err != nil {
		return nil, err
	}
	id, err := c.newID(id, of.kind)
	if err != nil {
		return nil, err
	}
	return c.put(model.Change{Put: []model.Entity{{ID: id, Type: of.kind, Properties: of.properties()}}}, id)
}

// put commits a change and tells of one entity in it.
func (c *call) put(change model.Change, id string) (map[string]any, error) {
	if err := c.commit(change); err != nil {
		return nil, err
	}
	e, _ := c.ws.Entity(id)
	return told(e)
}

type createPoint struct {
	EntityID    string   `json:"entity_id"`
	Coordinates *Vec     `json:"coordinates"`
	X           *float64 `json:"x"`
	Y           *float64 `json:"y"`
	Z           *float64 `json:"z"`
}

func (p createPoint) check() error {
	switch {
	case p.Coordinates != nil && (p.X != nil || p.Y != nil || p.Z != nil):
		return Refuse(InvalidParameter, "x", nil, "coordinates and x, y, z say the same", "give one of the two")
	case p.Coordinates == nil && (p.X == nil || p.Y == nil):
		return Refuse(InvalidParameter, "coordinates", nil, "coordinates is missing", "give coordinates [x, y, z], or x, y and z")
	}
	return nil
}

func (c *call) createPoint(p createPoint) (any, error) {
	at := p.Coordinates
	if at == nil {
		at = &Vec{*p.X, *p.Y, given(p.Z, 0)}
	}
	return c.addCurve(p.EntityID, curve{kind: model.Point, at: *at})
}

type createLine struct {
	EntityID string `json:"entity_id"`
	Start    Place  `json:"start" need:""`
	End      Place  `json:"end" need:""`
}

func (p createLine) check() error {
	if p.Start.Ref != "" || p.End.Ref != "" {
		return nil
	}
	return curve{kind: model.Line, at: p.Start.At, end: p.End.At}.check()
}

func (c *call) createLine(p createLine) (any, error) {
	start, err := c.where("start", p.Start)
	if err != nil {
		return nil, err
	}
	end, err := c.where("end", p.End)
	if err != nil {
		return nil, err
	}
	return c.addCurve(p.EntityID, curve{kind: model.Line, at: start, end: end})
}

type createCircle struct {
	EntityID string  `json:"entity_id"`
	Center   Place   `json:"center" need:""`
	Radius   float64 `json:"radius" need:"" is:"mm, above 0"`
	Normal   *Vec    `json:"normal" is:"of its plane; z where nothing is given"`
}

// turned sets the plane that a circle lies in: z = const unless a normal says
// otherwise.
func (c *curve) turned(normal *Vec) error {
	c.normal = [3]float64{0, 0, 1}
	if normal != nil {
		if err := direction("normal", *normal); err != nil {
			return err
		}
		c.normal = zeroed(mesh.Unit(*normal))
	}
	c.ax, _ = axes(c.normal)
	return nil
}

func (p createCircle) about(center [3]float64) (curve, error) {
	out := curve{kind: model.Circle, at: center, radius: p.Radius}
	err := out.turned(p.Normal)
	return out, err
}

// check takes a circle whose centre may not be known yet.
func (p createCircle) check() error { return sound(p.about([3]float64{})) }

func (c *call) createCircle(p createCircle) (any, error) {
	return c.addAbout(p.EntityID, p.Center, p.about)
}

// addAbout makes an entity of a curve about a centre.
func (c *call) addAbout(id string, center Place, about func(center [3]float64) (curve, error)) (any, error) {
	at, err := c.where("center", center)
	if err != nil {
		return nil, err
	}
	of, err := about(at)
	if err != nil {
		return nil, err
	}
	return c.addCurve(id, of)
}

type createArc struct {
	EntityID   string  `json:"entity_id"`
	Center     Place   `json:"center" need:""`
	Radius     float64 `json:"radius" need:"" is:"mm, above 0"`
	StartAngle float64 `json:"start_angle" need:"" is:"radians"`
	EndAngle   float64 `json:"end_angle" need:"" is:"radians"`
	Normal     *Vec    `json:"normal"`
}

func (p createArc) about(center [3]float64) (curve, error) {
	out := curve{kind: model.Arc, at: center, radius: p.Radius, from: p.StartAngle, to: p.EndAngle}
	err := out.turned(p.Normal)
	return out, err
}

func (p createArc) check() error { return sound(p.about([3]float64{})) }

func (c *call) createArc(p createArc) (any, error) { return c.addAbout(p.EntityID, p.Center, p.about) }

type queryEntity struct {
	EntityID string `json:"entity_id" need:""`
}

// queried is an entity with the constraints that hold it.
type queried struct {
	model.Entity
	Constraints []string `json:"constraints"`
}

func (c *call) queryEntity(p queryEntity) (any, error) {
	e, err := c.entity("entity_id", p.EntityID)
	if err != nil {
		return nil, err
	}
	return queried{e, c.ws.Constraints(e.ID)}, nil
}

type listEntities struct {
	EntityType string `json:"entity_type" is:"point, line, circle, arc, constraint or solid"`
	FilterType string `json:"filter_type" is:"the same"`
	Limit      *int   `json:"limit" is:"1 to 1000; 100 where nothing is given"`
	Offset     int    `json:"offset"`
}

func (p listEntities) check() error {
	types := []model.EntityType{"", model.Point, model.Line, model.Circle, model.Arc, model.Constraint, model.Solid}
	if t := cmp.Or(p.EntityType, p.FilterType); !slices.Contains(types, model.EntityType(t)) {
		return Invalid("entity_type", t, "point, line, circle, arc, constraint or solid")
	}
	_, err := window(p.Limit, p.Offset, 100)
	return err
}

func (c *call) listEntities(p listEntities) (any, error) {
	p.EntityType = cmp.Or(p.EntityType, p.FilterType)
	limit, err := window(p.Limit, p.Offset, 100)
	if err != nil {
		return nil, err
	}
	page, total := c.ws.Entities(model.Filter{Type: model.EntityType(p.EntityType), Limit: limit, Offset: p.Offset})
	return map[string]any{"entities": page, "total_count": total}, nil
}

// window checks the part of a list that is asked for.
func window(limit *int, offset, usual int) (int, error) {
	switch n := given(limit, usual); {
	case n < 1 || n > 1000:
		return 0, Invalid("limit", n, "1 to 1000")
	case offset < 0:
		return 0, Invalid("offset", offset, "0 or more")
	default:
		return n, nil
	}
}
