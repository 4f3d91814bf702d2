// Package model is the content of a CAD workspace as plain data: entities,
// the shapes that solids are made by, and the journal of operations that led
// there. It holds no geometry engine: a shape is a recipe that any kernel can
// carry out again, named by the hash of what it says, so a workspace can be
// rebuilt exactly from its journal, and two workspaces can be compared and
// merged without a kernel.
//
// Lengths are millimetres, angles radians. (Model 5; notes of its field names.)
package model

import (
	"fmt"

	"swarmdeck/engine/cad/mesh"
	"swarmdeck/engine/core"
)

// EntityType is what an entity is.
type EntityType string

// The types of entities.
const (
	Point      EntityType = "point"
	Line       EntityType = "line"
	Circle     EntityType = "circle"
	Arc        EntityType = "arc"
	Constraint EntityType = "constraint"
	Solid      EntityType = "solid"
)

// Entity is one thing in a workspace.
type Entity struct {
	ID          string     `json:"entity_id"`
	Type        EntityType `json:"entity_type" allow:"point, line, circle, arc, constraint, solid"`
	WorkspaceID string     `json:"workspace_id"`
	// Properties is a JSON object: a curve's definition, or what a kernel
	// measured of a solid.
	Properties core.Raw `json:"properties"`
	// Shape is the hash of the recipe that a solid was made by.
	Shape string `json:"shape,omitzero"`
	// Hash is of what defines the entity: its type, and a solid's shape or
	// another's properties. Base is the hash that it had when the workspace was
	// branched; empty for what was made here.
	Hash string `json:"hash"`
	Base string `json:"base_hash,omitzero"`
	// Origin is the workspace and the seq of the operation that first made it,
	// as WORKSPACE:SEQ. It goes along with branches and merges, so that two
	// entities of one id are told from two versions of one entity.
	Origin    string `json:"origin,omitzero" allow:"1-200 bytes, WORKSPACE:SEQ of the operation that first made it"`
	CreatedBy string `json:"created_by,omitzero" allow:"at most 200 bytes"` // agent_id
}

// Shape is the recipe of a solid.
type Shape struct {
	Hash string `json:"hash"` // lower-case hex sha256 of the canonical JSON of op, params, inputs and blob
	// Op is extrude, revolve, box, cylinder, sphere, cone, union, subtract,
	// intersect, pattern_linear, pattern_circular, mirror, transform, import,
	// fillet, chamfer or shell.
	Op     string   `json:"op"`
	Params core.Raw `json:"params,omitzero"`
	Inputs []string `json:"inputs,omitzero"` // hashes, in order
	// Blob is the sha256 of the file content that an import starts from.
	Blob string `json:"blob,omitzero"`
}

// Entry is one operation of a workspace's journal: everything that changed, so
// that replaying the entries of a workspace in order gives its state.
type Entry struct {
	WorkspaceID string   `json:"workspace_id"`
	Seq         int      `json:"seq"` // from 1, without gaps
	Method      string   `json:"method" allow:"1-200 bytes"`
	Params      core.Raw `json:"params,omitzero"`
	AgentID     string   `json:"agent_id,omitzero" allow:"at most 200 bytes"`
	At          string   `json:"at,omitzero"` // RFC 3339, UTC

	Put     []Entity `json:"put,omitzero"` // added or changed, whole
	Removed []string `json:"removed,omitzero"`
	Shapes  []Shape  `json:"shapes,omitzero"` // that the entities put need and the workspace lacked
	Blobs   []Blob   `json:"blobs,omitzero"`
	// Undoes and Redoes is the seq of the entry that history.undo takes back
	// and history.redo brings back.
	Undoes int `json:"undoes,omitzero"`
	Redoes int `json:"redoes,omitzero"`

	// Conflicts is what a merge left open. They take the place of those that
	// were open of the same entities of the same source.
	Conflicts []Conflict `json:"conflicts,omitzero"`
	Resolved  []Resolved `json:"resolved,omitzero"`
	Record    *Record    `json:"workspace,omitzero"` // of the first entry: the workspace itself
}

// Blob is the content of a file that a shape starts from.
type Blob struct {
	Hash string `json:"hash"`
	Data []byte `json:"data"` // base64 in JSON
}

// Record is a workspace itself.
type Record struct {
	ID        string `json:"workspace_id"`
	Name      string `json:"workspace_name" allow:"at most 200 bytes"`
	Base      string `json:"base_workspace_id,omitzero"`
	AgentID   string `json:"agent_id,omitzero" allow:"at most 200 bytes"`
	CreatedAt string `json:"created_at,omitzero"`
}

// ConflictType is why a merge could not decide.
type ConflictType string

// The conflicts of a merge (requirement 6.4).
const (
	BothModified    ConflictType = "both_modified"
	DeletedModified ConflictType = "deleted_modified"
	IDCollision     ConflictType = "id_collision" // made on both sides, differently
	GeometryOverlap ConflictType = "geometry_overlap"
)

// Conflict is one thing of a merge that a person or a strategy must decide.
type Conflict struct {
	Type        ConflictType `json:"conflict_type" allow:"both_modified, deleted_modified, id_collision, geometry_overlap"`
	EntityID    string       `json:"entity_id"` // of the source
	WithID      string       `json:"with_entity_id,omitzero"`
	Source      string       `json:"source_workspace_id"`
	Target      string       `json:"target_workspace_id"`
	SourceHash  string       `json:"source_hash,omitzero"` // empty: deleted there
	TargetHash  string       `json:"target_hash,omitzero"`
	BaseHash    string       `json:"base_hash,omitzero"`
	Volume      float64      `json:"overlap_volume,omitzero" allow:"0 or more mm³"`
	Description string       `json:"description" allow:"at most 2000 bytes"`
}

// Strategy resolves a conflict.
type Strategy string

// The strategies of requirement 6.4, and how a merge decides what is no conflict.
const (
	KeepSource  Strategy = "keep_source"
	KeepTarget  Strategy = "keep_target"
	ManualMerge Strategy = "manual_merge"
	NoConflict  Strategy = "no_conflict"
)

// Resolved is how an entity of a source was decided, by the merge itself or as
// a conflict. It closes what was open of that entity. A later merge of the same
// source starts from here: it looks at the entity again only when that has
// changed in the source since.
type Resolved struct {
	EntityID   string   `json:"entity_id"`
	Source     string   `json:"source_workspace_id"`
	SourceHash string   `json:"source_hash,omitzero"` // empty: deleted there
	Strategy   Strategy `json:"strategy" allow:"keep_source, keep_target, manual_merge, no_conflict"`
}

// Facts is what a kernel measured of a solid, as its entity has them.
type Facts struct {
	Volume   float64    `json:"volume"`       // mm³
	Area     float64    `json:"surface_area"` // mm²
	Center   [3]float64 `json:"center_of_mass"`
	Bounds   mesh.Box   `json:"bounding_box"`
	Topology Topology   `json:"topology"`
	// Tolerance is how far facets stay from the true surface, in mm; 0 when exact.
	Tolerance float64 `json:"tolerance"`
	Operation string  `json:"operation,omitempty"` // of its shape: extrude, union …
}

// Topology counts what bounds a solid.
type Topology struct {
	Faces    int  `json:"face_count"`
	Edges    int  `json:"edge_count"`
	Vertices int  `json:"vertex_count"`
	Closed   bool `json:"is_closed"`
	Manifold bool `json:"is_manifold"`
}

// FactsOf reads the properties of a solid.
func FactsOf(solid Entity) (f Facts, err error) {
	if err := core.DecodeStored(solid.Properties, &f); err != nil {
		return Facts{}, fmt.Errorf("read a solid's properties: %w", err)
	}
	return f, nil
}

// Valid says whether the surface closes a body.
func (f Facts) Valid() bool { return f.Topology.Closed && f.Topology.Manifold && f.Volume > 0 }

// Validity is Valid in words.
func (f Facts) Validity() string {
	switch {
	case f.Valid():
		return "closed and manifold"
	case !f.Topology.Closed:
		return "not closed"
	case !f.Topology.Manifold:
		return "not manifold"
	}
	return "without volume"
}
