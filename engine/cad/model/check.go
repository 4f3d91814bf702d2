package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
)

// Every operation that is read again is checked.
var (
	entries  = bound.For[Entry]()
	entities = bound.For[Entity]()
)

// check reports a first entry that does not fit its workspace.
func (r Record) check(e Entry) error {
	if err := CheckWorkspaceID(r.ID); err != nil {
		return err
	}
	if err := bound.Check(r); err != nil {
		return err
	}
	if r.Base != "" && (CheckWorkspaceID(r.Base) != nil || r.Base == r.ID) {
		return core.Invalid("base_workspace_id", r.Base, "another workspace")
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

func (e Entry) checkHead() error {
	if err := entries(&e); err != nil {
		return err
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
	if err := entities(&p); err != nil {
		return err
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
	}
	return nil
}

// checkMaterial reports shapes and files that an entry brings and that are not
// what their names say, or that lack something. It returns the hashes.
func (w *Workspace) checkMaterial(e Entry) (shapes map[string]bool, err error) {
	blobs := make(map[string]bool, len(e.Blobs))
	for _, b := range e.Blobs {
		if len(b.Data) > MaxBlob {
			return nil, core.Invalid("blob", fmt.Sprintf("%d bytes", len(b.Data)), fmt.Sprintf("at most %d bytes", MaxBlob))
		}
		if NewBlob(b.Data).Hash != b.Hash {
			return nil, core.Invalid("blob", b.Hash, "the sha256 of its data")
		}
		blobs[b.Hash] = true
	}
	shapes = make(map[string]bool, len(e.Shapes))
	for _, s := range e.Shapes {
		same, err := NewShape(s.Op, s.Params, s.Inputs, s.Blob)
		if err != nil {
			return nil, fmt.Errorf("shape %s: %w", s.Hash, err)
		}
		if same.Hash != s.Hash || !bytes.Equal(same.Params, s.Params) {
			return nil, core.Invalid("shape", s.Hash, "the hash of what the shape says, its parameters in canonical JSON")
		}
		for _, input := range s.Inputs {
			if !shapes[input] && w.shapes[input].Hash == "" {
				return nil, core.Errorf(core.InvalidInput, "shape %s: its input %s is missing", s.Hash, input)
			}
		}
		if s.Blob != "" && !blobs[s.Blob] && w.blobs[s.Blob] == nil {
			return nil, core.Errorf(core.InvalidInput, "shape %s: its file %s is missing", s.Hash, s.Blob)
		}
		shapes[s.Hash] = true
	}
	return shapes, nil
}

func (c Conflict) check(target string) error {
	if err := bound.Check(c); err != nil {
		return err
	}
	if c.WithID != "" {
		if err := CheckID("with_entity_id", c.WithID); err != nil {
			return err
		}
	}
	if c.Target != target {
		return core.Invalid("target_workspace_id", c.Target, target)
	}
	return checkSource(target, c.EntityID, c.Source, c.SourceHash, c.TargetHash, c.BaseHash)
}

func (r Resolved) check(target string) error {
	if err := bound.Check(r); err != nil {
		return err
	}
	return checkSource(target, r.EntityID, r.Source, r.SourceHash)
}

func checkSource(target, entity, source string, hashes ...string) error {
	if err := CheckID("entity_id", entity); err != nil {
		return err
	}
	if CheckWorkspaceID(source) != nil || source == target {
		return core.Invalid("source_workspace_id", source, "another workspace")
	}
	if i := slices.IndexFunc(hashes, func(h string) bool { return h != "" && !digest().MatchString(h) }); i >= 0 {
		return core.Invalid("hash", hashes[i], "a lower-case hex sha256")
	}
	return nil
}

// Bounds of what one operation brings in.
const (
	MaxProperties = 1 << 20  // bytes of one entity's properties
	MaxParams     = 4 << 20  // bytes of one shape's or operation's parameters
	MaxBlob       = 16 << 20 // bytes of one file
	MaxEntities   = 20_000   // of a workspace
	MaxWorkspace  = 40       // bytes of a workspace's id
)

var (
	entityID    = core.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	workspaceID = core.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,39}$`)
	digest      = core.Pattern(`^[0-9a-f]{64}$`)
)

// parts are what a reference may name of an entity, as in line_1.end.
var parts = []string{".start", ".end", ".center"}

// CheckID reports a malformed entity id. An id does not end like a reference to
// a part of an entity.
func CheckID(field, id string) error {
	if !entityID().MatchString(id) || part(id) != "" {
		return core.Invalid(field, id, "a letter or _, then up to 63 of letters, digits, _ . -, not ending in .start, .end or .center")
	}
	return nil
}

// CheckWorkspaceID reports a malformed workspace id. It leaves room for the ids
// of entities that begin with it.
func CheckWorkspaceID(id string) error {
	if !workspaceID().MatchString(id) {
		return core.Invalid("workspace_id", id, "a letter or _, then up to 39 of letters, digits, _ . -")
	}
	return nil
}

var notInID = core.Pattern(`[^A-Za-z0-9_.-]+`)

// WorkspaceIDOf makes the id of a workspace out of a name that is not empty.
func WorkspaceIDOf(name string) string {
	id := notInID().ReplaceAllString(name, "_")
	if strings.IndexByte("0123456789.-", id[0]) >= 0 {
		id = "_" + id
	}
	return id[:min(len(id), MaxWorkspace)]
}

func part(ref string) string {
	for _, p := range parts {
		if strings.HasSuffix(ref, p) {
			return p
		}
	}
	return ""
}

const maxInputs = 1000

// arity is how many inputs the op of a shape takes.
func arity(op string) (least, most int, known bool) {
	switch op {
	case "extrude", "revolve", "box", "cylinder", "sphere", "cone", "import":
		return 0, 0, true
	case "union", "subtract", "intersect":
		return 2, maxInputs, true
	case "pattern_linear", "pattern_circular", "mirror", "transform", "fillet", "chamfer", "shell":
		return 1, 1, true
	}
	return 0, 0, false
}

// NewShape makes a shape under the hash of what it says. Params is a JSON
// object or nothing.
func NewShape(op string, params core.Raw, inputs []string, blob string) (Shape, error) {
	least, most, known := arity(op)
	if !known {
		return Shape{}, core.Invalid("op", op, "extrude, revolve, box, cylinder, sphere, cone, union, subtract, intersect, pattern_linear, pattern_circular, mirror, transform, import, fillet, chamfer or shell")
	}
	if len(inputs) < least || len(inputs) > most {
		return Shape{}, core.Invalid("inputs", len(inputs), fmt.Sprintf("%d to %d for %s", least, most, op))
	}
	if (op == "import") != (blob != "") {
		return Shape{}, core.Invalid("blob", blob, "the content of a file for import, nothing for any other op")
	}
	params, err := object("params", params, MaxParams)
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Op: op, Params: params, Inputs: slices.Clone(inputs), Blob: blob}
	if s.Hash, err = core.Digest(s); err != nil { // its own hash is still empty
		return Shape{}, fmt.Errorf("hash shape %s: %w", op, err)
	}
	return s, nil
}

// NewBlob names a content by its hash.
func NewBlob(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{Hash: hex.EncodeToString(sum[:]), Data: data}
}

// hashEntity is of what defines an entity.
func hashEntity(e Entity) (string, error) {
	if e.Type == Solid {
		return core.Digest([]string{string(e.Type), e.Shape})
	}
	return core.Digest([]any{e.Type, e.Properties})
}

// object is the canonical form of a JSON object; nothing stays nothing.
func object(field string, data core.Raw, most int) (core.Raw, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := core.CheckObject(field, data, most); err != nil {
		return nil, err
	}
	out, err := core.Canonical(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return slices.Clone(out), nil
}
