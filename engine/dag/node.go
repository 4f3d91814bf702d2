package dag

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// NodeType is what a node of the graph is.
type NodeType string

// The types of nodes that are stated with their fields.
const (
	TypeMessage     NodeType = "Message"
	TypeResource    NodeType = "Resource"
	TypeSnapshot    NodeType = "Snapshot"    // of a resource
	TypeRunSnapshot NodeType = "RunSnapshot" // the cached summary of a run
	TypeHandle      NodeType = "Handle"
	TypePolicy      NodeType = "Policy"
	TypeSubagent    NodeType = "Subagent"
)

// The types of nodes that have an id alone. The last four stand for events,
// and their ids are the events'.
const (
	TypeAgent      NodeType = "Agent"
	TypeRun        NodeType = "Run"
	TypeBranch     NodeType = "Branch" // AGENT_ID/BRANCH
	TypeSummary    NodeType = "Summary"
	TypeContainer  NodeType = "Container"
	TypeEvent      NodeType = "Event"
	TypeToolCall   NodeType = "ToolCall"
	TypeToolResult NodeType = "ToolResult"
	TypeGeneration NodeType = "Generation" // a model_response
)

// NodeTypes are all types. A type's place in this list is part of what is
// stored.
func NodeTypes() []NodeType {
	return []NodeType{
		TypeMessage, TypeResource, TypeSnapshot, TypeRunSnapshot, TypeHandle, TypePolicy, TypeSubagent,
		TypeAgent, TypeRun, TypeBranch, TypeSummary, TypeContainer, TypeEvent, TypeToolCall, TypeToolResult, TypeGeneration,
	}
}

// ofEvent reports types whose nodes are events.
func (t NodeType) ofEvent() bool {
	return t == TypeEvent || t == TypeToolCall || t == TypeToolResult || t == TypeGeneration
}

// fixed reports types whose nodes never change.
func (t NodeType) fixed() bool {
	return t == TypeMessage || t == TypeSnapshot || t == TypeRunSnapshot
}

// NodeRef names a node: ids are unique per type only.
type NodeRef struct {
	Type NodeType `json:"type"`
	ID   string   `json:"id"`
}

func (r NodeRef) String() string { return string(r.Type) + ":" + r.ID }

func (r NodeRef) check(f *problems, field string) {
	oneOf(f, field+".type", r.Type, NodeTypes()...)
	if r.Type.ofEvent() {
		f.eventID(field+".id", r.ID)
		return
	}
	f.name(field+".id", r.ID)
}

// Node is what an event states about a node: its type, its fields, and the
// time over which that holds.
type Node struct {
	Type NodeType
	Valid
	Body NodeBody
}

// NodeBody are the fields of a node: *Message, *Resource, *Snapshot,
// *RunSnapshot, *Handle, *Policy or *Subagent.
type NodeBody interface{ id() string }

func (b *Message) id() string     { return b.ID }
func (b *Resource) id() string    { return b.ID }
func (b *Snapshot) id() string    { return b.ID }
func (b *RunSnapshot) id() string { return b.ID }
func (b *Handle) id() string      { return b.ID }
func (b *Policy) id() string      { return b.ID }
func (b *Subagent) id() string    { return b.ID }

// nodeBodies are the fields of the first types of nodes, in their order.
var nodeBodies = []NodeBody{new(Message), new(Resource), new(Snapshot), new(RunSnapshot), new(Handle), new(Policy), new(Subagent)}

// bodyOf makes an empty body; nil of a type that has no fields.
func bodyOf(t NodeType) NodeBody {
	i := slices.Index(NodeTypes()[:len(nodeBodies)], t)
	if i < 0 {
		return nil
	}
	return emptyLike(nodeBodies[i])
}

// NewNode is a node as an event states it.
func NewNode(body NodeBody) Node {
	i := slices.IndexFunc(nodeBodies, func(like NodeBody) bool { return reflect.TypeOf(like) == reflect.TypeOf(body) })
	return Node{Type: NodeTypes()[i], Body: body}
}

// ID is the node's id.
func (n Node) ID() string {
	if n.Body == nil {
		return ""
	}
	return n.Body.id()
}

// Ref names the node.
func (n Node) Ref() NodeRef { return NodeRef{n.Type, n.ID()} }

func (n Node) check(f *problems, at Time) {
	if n.Body == nil {
		oneOf(f, "type", n.Type, NodeTypes()[:len(nodeBodies)]...)
		return
	}
	f.members(n.Body)
	n.Valid.check(f, at)
}

// nodeHead is what all nodes have.
type nodeHead struct {
	Type  NodeType `json:"type"`
	Valid `json:",embed"`
	Rest  core.Raw `json:",embed"`
}

// UnmarshalJSON implements json.Unmarshaler. A type that is not known is left
// to check.
func (n *Node) UnmarshalJSON(data []byte) error {
	var head nodeHead
	if err := core.Decode(data, &head); err != nil {
		return err
	}
	*n = Node{Type: head.Type, Valid: head.Valid, Body: bodyOf(head.Type)}
	if n.Body == nil {
		return nil
	}
	if len(head.Rest) == 0 {
		head.Rest = core.Raw("{}")
	}
	return core.Decode(head.Rest, n.Body)
}

func (n Node) MarshalJSON() ([]byte, error) {
	if n.Body == nil {
		return nil, fmt.Errorf("encode a node of type %q: it has no fields", n.Type)
	}
	rest, err := core.Encode(n.Body)
	if err != nil {
		return nil, err
	}
	return core.Encode(nodeHead{n.Type, n.Valid, rest})
}

// Version is what an event stated about a node.
type Version struct {
	Node    Node   `json:"node"`
	EventID string `json:"event_id"`
	TS      Time   `json:"ts"`
	Pos     uint64 `json:"pos"`
}

// newest is a node's newest version; nil when it was never stated.
func (r reader) newest(ref NodeRef) (*Version, error) {
	num, _, err := r.num(nameKey(ref))
	if err != nil || num == 0 {
		return nil, err
	}
	return r.version(num, ^uint64(0))
}

// version is a node's newest version among the events before a pos.
func (r reader) version(num, before uint64) (*Version, error) {
	var v *Version
	err := r.versions(num, before, func(found *Version) (bool, error) {
		v = found
		return false, nil
	})
	return v, err
}

// versionAt is the version that held at a time.
func (r reader) versionAt(num uint64, at time.Time) (*Version, error) {
	const most = 1000 // versions looked at
	var v *Version
	n := 0
	err := r.versions(num, ^uint64(0), func(found *Version) (bool, error) {
		to := found.Node.Valid.To
		if !found.Node.Valid.start(found.TS).After(at) && (to.IsZero() || to.at.After(at)) {
			v = found
			return false, nil
		}
		n++
		return n < most, nil
	})
	return v, err
}

// versions calls fn for a node's versions among the events before a pos, the
// newest first.
func (r reader) versions(num, before uint64, fn func(*Version) (bool, error)) error {
	return stated.Within(r, record.Seq(num), nil, record.Seq(before), true, func(rest record.Parts, found record.Found[[]byte]) (bool, error) {
		pos, i := rest.Seq(), placeOf(found)
		e, err := r.event(pos)
		if err != nil {
			return false, err
		}
		if i >= len(e.Event.Nodes) {
			return false, core.Errorf(core.Internal, "event %d states no node %d", pos, i)
		}
		return fn(&Version{e.Event.Nodes[i], e.Event.EventID, e.Event.TS, pos})
	})
}

// placeOf is where a version stands within its event's nodes.
func placeOf(found record.Found[[]byte]) int {
	at := record.Parts(found.Data)
	return int(at.Short())
}

// maxVersions bounds what Node returns.
const maxVersions = 100

// NodeInfo is what is known of a node.
type NodeInfo struct {
	Type     NodeType  `json:"type"`
	ID       string    `json:"id"`
	Versions []Version `json:"versions,omitempty"` // the newest 100, newest first
}

// Node finds a node that some event names.
func (d *DAG) Node(ctx context.Context, tenant string, ref NodeRef) (NodeInfo, error) {
	info := NodeInfo{Type: ref.Type, ID: ref.ID}
	f := &problems{}
	if ref.check(f, "node"); len(f.all) > 0 {
		return info, f.err()
	}
	err := d.view(ctx, tenant, "read a node", func(r reader) error {
		num, err := r.named(ref)
		if err != nil {
			return err
		}
		return r.versions(num, ^uint64(0), func(v *Version) (bool, error) {
			info.Versions = append(info.Versions, *v)
			return len(info.Versions) < maxVersions, nil
		})
	})
	return info, audit.Explain(fmt.Sprintf("read %s", ref), err)
}
