package dag

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Recorded is an event in its place. Its JSON is the event's with pos, seq and
// recorded_at added, and new after Emit.
type Recorded struct {
	Pos        uint64 // in the tenant's record, from 1
	Seq        uint64 // in its stream, from 1
	RecordedAt Time   // when it was taken into the record
	New        bool   // of Emit: it was not there before
	Event      Event
}

func (r Recorded) MarshalJSON() ([]byte, error) { return r.json(r.Event.raw), nil }

func (r Recorded) json(event core.Raw) core.Raw {
	b := make([]byte, 0, len(event)+200)
	b = append(append(b, `{"event_id":"`...), r.Event.EventID...)
	b = strconv.AppendUint(append(b, `","pos":`...), r.Pos, 10)
	b = strconv.AppendUint(append(b, `,"seq":`...), r.Seq, 10)
	b = append(append(b, `,"recorded_at":"`...), r.RecordedAt.String()...)
	b = append(b, '"')
	if r.New {
		b = append(b, `,"new":true`...)
	}
	return append(append(b, ','), event[1:]...)
}

// Detail is an event in its place, with all its edges. Its JSON has them in
// place of those that the event itself carries.
type Detail struct {
	Recorded
	Edges []Edge
}

func (d Detail) MarshalJSON() ([]byte, error) {
	event, err := without(d.Event.raw, "edges")
	if err != nil {
		return nil, err
	}
	edges, err := core.Encode(d.Edges)
	if err != nil {
		return nil, err
	}
	b := d.json(event)
	return append(append(append(b[:len(b)-1], `,"edges":`...), edges...), '}'), nil
}

// minPrefix is the shortest beginning that an event is found by.
const minPrefix = 8

// Find completes the beginning of an event's id, 8 digits or more; a whole id
// is returned as it is. It fails when no event or more than one begins so.
func (d *DAG) Find(ctx context.Context, tenant, prefix string) (string, error) {
	if IsEventID(prefix) {
		return prefix, nil
	}
	even := prefix[:len(prefix)/2*2]
	raw, err := hex.DecodeString(even)
	if err != nil || len(prefix) < minPrefix || len(prefix) > 64 || strings.ToLower(prefix) != prefix {
		return "", core.Invalid("event_id", prefix, "an event's id, 64 lower-case hex digits, or its first 8 or more")
	}
	var found []string
	err = d.view(ctx, tenant, "find an event", func(r reader) error {
		return names.Within(r, rawNameKey(typeCode(TypeEvent), string(raw)), nil, nil, false, func(rest record.Parts, at record.Found[[]byte]) (bool, error) {
			id := even + hex.EncodeToString(rest)
			if len(at.Data) == 16 && strings.HasPrefix(id, prefix) {
				found = append(found, id)
			}
			return len(found) < 2, nil
		})
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", core.Missing("event", prefix)
	case len(found) > 1:
		return "", core.Errorf(core.Conflict, "event_id: more than one event begins with %s, such as %s and %s", prefix, found[0], found[1]).With("field", "event_id")
	}
	return found[0], nil
}

// FindNode reads the name of a node: TYPE:ID, an event's id or its beginning,
// or an id that only one node has.
func (d *DAG) FindNode(ctx context.Context, tenant, name string) (NodeRef, error) {
	if typ, id, ok := strings.Cut(name, ":"); ok && typeCode(NodeType(typ)) > 0 {
		ref := NodeRef{NodeType(typ), id}
		if ref.Type.ofEvent() {
			var err error
			if ref.ID, err = d.Find(ctx, tenant, id); err != nil {
				return ref, err
			}
		}
		f := &problems{}
		ref.check(f, "node")
		return ref, f.err()
	}
	var found []NodeRef
	err := d.view(ctx, tenant, "find a node", func(r reader) error {
		for _, t := range NodeTypes() {
			if t.ofEvent() || name == "" || len(name) > maxID {
				continue
			}
			num, _, err := r.num(nameKey(NodeRef{t, name}))
			if err != nil {
				return err
			}
			if num > 0 {
				found = append(found, NodeRef{t, name})
			}
		}
		return nil
	})
	if err != nil {
		return NodeRef{}, err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		names := core.Map(found, func(ref NodeRef) string { return ref.String() })
		return NodeRef{}, core.Errorf(core.Conflict, "node: %q names more than one: %s", core.Clip(name), strings.Join(names, ", ")).With("field", "node")
	}
	id, err := d.Find(ctx, tenant, name)
	if err != nil {
		if core.AsError(err).Code == core.InvalidInput {
			err = core.Missing("node", name)
		}
		return NodeRef{}, err
	}
	return NodeRef{TypeEvent, id}, nil
}
