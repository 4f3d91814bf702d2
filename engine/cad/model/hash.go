package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

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

func part(ref string) string {
	for _, p := range parts {
		if strings.HasSuffix(ref, p) {
			return p
		}
	}
	return ""
}

func (t EntityType) known() bool {
	return slices.Contains([]EntityType{Point, Line, Circle, Arc, Constraint, Solid}, t)
}

// arity is how many inputs the op of a shape takes.
type arity struct{ least, most int }

const maxInputs = 1000

func arityOf(op string) (arity, bool) {
	switch op {
	case "extrude", "revolve", "box", "cylinder", "sphere", "cone", "import":
		return arity{0, 0}, true
	case "union", "subtract", "intersect":
		return arity{2, maxInputs}, true
	case "pattern_linear", "pattern_circular", "mirror", "transform", "fillet", "chamfer", "shell":
		return arity{1, 1}, true
	}
	return arity{}, false
}

// NewShape makes a shape under the hash of what it says. Params is a JSON
// object or nothing.
func NewShape(op string, params core.Raw, inputs []string, blob string) (Shape, error) {
	n, known := arityOf(op)
	if !known {
		return Shape{}, core.Invalid("op", op, "extrude, revolve, box, cylinder, sphere, cone, union, subtract, intersect, pattern_linear, pattern_circular, mirror, transform, import, fillet, chamfer or shell")
	}
	if len(inputs) < n.least || len(inputs) > n.most {
		return Shape{}, core.Invalid("inputs", len(inputs), fmt.Sprintf("%d to %d for %s", n.least, n.most, op))
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
