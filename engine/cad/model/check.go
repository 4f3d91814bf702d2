package model

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"swarmdeck/engine/core"
)

const maxName = 200 // bytes of what people call things

// check reports a first entry that does not fit its workspace.
func (r Record) check(e Entry) error {
	if err := CheckWorkspaceID(r.ID); err != nil {
		return err
	}
	if len(r.Name) > maxName || len(r.AgentID) > maxName {
		return core.Invalid("workspace_name", r.Name, fmt.Sprintf("at most %d bytes", maxName))
	}
	if r.Base != "" {
		if err := CheckWorkspaceID(r.Base); err != nil || r.Base == r.ID {
			return core.Invalid("base_workspace_id", r.Base, "another workspace")
		}
	}
	if err := checkTime("created_at", r.CreatedAt); err != nil {
		return err
	}
	if len(e.Removed)+len(e.Resolved)+len(e.Conflicts) > 0 || r.Base == "" && len(e.Put) > 0 {
		return core.Errorf(core.InvalidInput, "a workspace begins with what its base had, and nothing else")
	}
	return nil
}

func checkTime(field, at string) error {
	if at == "" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
		return core.Invalid(field, at, "a time such as 2026-01-02T15:04:05Z")
	}
	return nil
}

// checkHead reports bad words about an operation.
func (e Entry) checkHead() error {
	if e.Method == "" || len(e.Method) > maxName {
		return core.Invalid("method", e.Method, fmt.Sprintf("1-%d bytes", maxName))
	}
	if len(e.AgentID) > maxName {
		return core.Invalid("agent_id", e.AgentID, fmt.Sprintf("at most %d bytes", maxName))
	}
	if len(e.Params) > 0 {
		if err := core.CheckObject("params", e.Params, MaxParams); err != nil {
			return err
		}
	}
	return checkTime("at", e.At)
}

// checkEntity reports an entity that does not say about itself what follows
// from its definition, or that has no place in this workspace.
func (w *Workspace) checkEntity(p Entity, first bool) error {
	if err := CheckID("entity_id", p.ID); err != nil {
		return err
	}
	if !p.Type.known() {
		return core.Invalid("entity_type", string(p.Type), "point, line, circle, arc, constraint or solid")
	}
	canon, err := object("properties", p.Properties, MaxProperties)
	if err != nil {
		return err
	}
	if len(canon) == 0 || !bytes.Equal(canon, p.Properties) {
		return core.Errorf(core.InvalidInput, "properties: want a canonical JSON object").With("field", "properties")
	}
	if (p.Type == Solid) != (p.Shape != "") {
		return core.Invalid("shape", p.Shape, "a shape for a solid, nothing for any other entity")
	}
	if hash, err := hashEntity(p); err != nil || hash != p.Hash {
		return core.Invalid("hash", p.Hash, "the hash of the entity's definition")
	}
	base := w.base[p.ID]
	if first {
		base = p.Hash
	}
	switch {
	case p.WorkspaceID != w.record.ID:
		return core.Invalid("workspace_id", p.WorkspaceID, w.record.ID)
	case p.Base != base:
		return core.Invalid("base_hash", p.Base, "the hash that it had when the workspace was branched")
	case p.Origin == "" || len(p.Origin) > maxName:
		return core.Invalid("origin", p.Origin, "WORKSPACE:SEQ of the operation that first made it")
	case len(p.CreatedBy) > maxName:
		return core.Invalid("created_by", p.CreatedBy, fmt.Sprintf("at most %d bytes", maxName))
	}
	return nil
}

// checkMaterial reports shapes and files that an entry brings and that are not
// what their names say, or that lack something. It returns the hashes.
func (w *Workspace) checkMaterial(e Entry) (shapes map[string]struct{}, err error) {
	blobs := make(map[string]struct{}, len(e.Blobs))
	for _, b := range e.Blobs {
		if len(b.Data) > MaxBlob {
			return nil, core.Invalid("blob", fmt.Sprintf("%d bytes", len(b.Data)), fmt.Sprintf("at most %d bytes", MaxBlob))
		}
		if NewBlob(b.Data).Hash != b.Hash {
			return nil, core.Invalid("blob", b.Hash, "the sha256 of its data")
		}
		blobs[b.Hash] = struct{}{}
	}
	shapes = make(map[string]struct{}, len(e.Shapes))
	for _, s := range e.Shapes {
		same, err := NewShape(s.Op, s.Params, s.Inputs, s.Blob)
		if err != nil {
			return nil, fmt.Errorf("shape %s: %w", s.Hash, err)
		}
		if same.Hash != s.Hash || !bytes.Equal(same.Params, s.Params) {
			return nil, core.Invalid("shape", s.Hash, "the hash of what the shape says, its parameters in canonical JSON")
		}
		for _, input := range s.Inputs {
			if _, here := shapes[input]; !here && w.shapes[input].Hash == "" {
				return nil, core.Errorf(core.InvalidInput, "shape %s: its input %s is missing", s.Hash, input)
			}
		}
		if _, here := blobs[s.Blob]; s.Blob != "" && !here && w.blobs[s.Blob] == nil {
			return nil, core.Errorf(core.InvalidInput, "shape %s: its file %s is missing", s.Hash, s.Blob)
		}
		shapes[s.Hash] = struct{}{}
	}
	return shapes, nil
}

func (c Conflict) check(target string) error {
	switch c.Type {
	case BothModified, DeletedModified, IDCollision, GeometryOverlap:
	default:
		return core.Invalid("conflict_type", string(c.Type), "both_modified, deleted_modified, id_collision or geometry_overlap")
	}
	if c.WithID != "" {
		if err := CheckID("with_entity_id", c.WithID); err != nil {
			return err
		}
	}
	if c.Target != target {
		return core.Invalid("target_workspace_id", c.Target, target)
	}
	if len(c.Description) > maxParagraph {
		return core.Invalid("description", c.Description, fmt.Sprintf("at most %d bytes", maxParagraph))
	}
	if c.Volume < 0 || math.IsNaN(c.Volume) || math.IsInf(c.Volume, 0) {
		return core.Invalid("overlap_volume", c.Volume, "0 or more mm³")
	}
	return checkSource(target, c.EntityID, c.Source, c.SourceHash, c.TargetHash, c.BaseHash)
}

const maxParagraph = 2000

func (r Resolved) check(target string) error {
	switch r.Strategy {
	case KeepSource, KeepTarget, ManualMerge, NoConflict:
	default:
		return core.Invalid("strategy", string(r.Strategy), "keep_source, keep_target, manual_merge or no_conflict")
	}
	return checkSource(target, r.EntityID, r.Source, r.SourceHash)
}

func checkSource(target, entity, source string, hashes ...string) error {
	if err := CheckID("entity_id", entity); err != nil {
		return err
	}
	if err := CheckWorkspaceID(source); err != nil || source == target {
		return core.Invalid("source_workspace_id", source, "another workspace")
	}
	for _, h := range hashes {
		if h != "" && !digest().MatchString(h) {
			return core.Invalid("hash", h, "a lower-case hex sha256")
		}
	}
	return nil
}
