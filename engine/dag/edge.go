package dag

import (
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// EdgeType is a typed relation (model 4).
type EdgeType string

// The edge types.
const (
	AgentHasRun        EdgeType = "AGENT_HAS_RUN"
	RunHasEvent        EdgeType = "RUN_HAS_EVENT"
	EventProduces      EdgeType = "EVENT_PRODUCES"
	EventConsumes      EdgeType = "EVENT_CONSUMES"
	AppendedToHistory  EdgeType = "APPENDED_TO_HISTORY"
	CallsTool          EdgeType = "CALLS_TOOL"
	ReturnsResult      EdgeType = "RETURNS_RESULT"
	MCPResourceChanged EdgeType = "MCP_RESOURCE_UPDATED"
	Interrupts         EdgeType = "INTERRUPTS"
	Substitutes        EdgeType = "SUBSTITUTES"
	Summarizes         EdgeType = "SUMMARIZES"
	DerivedFrom        EdgeType = "DERIVED_FROM"
	OwnsResource       EdgeType = "OWNS_RESOURCE"
	MountsResource     EdgeType = "MOUNTS_RESOURCE"
	HasSubresource     EdgeType = "HAS_SUBRESOURCE"
	SnapshotOf         EdgeType = "SNAPSHOT_OF"
	RestoresTo         EdgeType = "RESTORES_TO"
	AttachedTo         EdgeType = "ATTACHED_TO"
	ForkedFrom         EdgeType = "FORKED_FROM"
	SpawnedFrom        EdgeType = "SPAWNED_FROM"
	ActivatesPolicy    EdgeType = "ACTIVATES_POLICY"
	ProposesPolicy     EdgeType = "PROPOSES_POLICY"
)

// cause says which end of an edge came before the other and led to it.
type cause byte

const (
	neither cause = iota
	fromEnd       // from led to to
	toEnd         // to led to from
)

// relation is what the model says of an edge type.
type relation struct {
	typ      EdgeType
	from, to []NodeType // nil is any
	attrs    string     // names that it may have
	cause    cause
	lasts    bool // holds over a time, until it is ended
}

// relations are the edge types in the model's order. A type's place in this
// list is part of what is stored.
func relations() []relation {
	type ts = []NodeType
	event, run, agent, resource := ts{TypeEvent}, ts{TypeRun}, ts{TypeAgent}, ts{TypeResource}
	return []relation{
		{typ: AgentHasRun, from: agent, to: run},
		{typ: RunHasEvent, from: run, to: event, attrs: "seq"},
		{typ: EventProduces, from: event, to: ts{TypeMessage, TypeGeneration, TypeToolResult, TypeSummary, TypeSnapshot, TypeRunSnapshot}, cause: fromEnd},
		{typ: EventConsumes, from: event, to: ts{TypeMessage, TypeGeneration, TypeToolCall, TypeResource}, cause: toEnd},
		{typ: AppendedToHistory, from: ts{TypeRun, TypeAgent}, to: ts{TypeMessage}, attrs: "list"},
		{typ: CallsTool, from: ts{TypeEvent, TypeGeneration}, to: ts{TypeToolCall}, cause: fromEnd},
		{typ: ReturnsResult, from: ts{TypeToolCall}, to: ts{TypeToolResult}, cause: fromEnd},
		{typ: MCPResourceChanged, from: event, to: resource, attrs: "uri", cause: fromEnd},
		{typ: Interrupts, from: event, to: event},
		{typ: Substitutes, from: event, to: event, cause: toEnd},
		{typ: Summarizes, from: ts{TypeSummary}, to: ts{TypeMessage, TypeEvent, TypeRun}, cause: toEnd},
		{typ: DerivedFrom, cause: toEnd},
		{typ: OwnsResource, from: ts{TypeAgent, TypeRun}, to: resource, lasts: true},
		{typ: MountsResource, from: ts{TypeRun, TypeContainer}, to: resource, attrs: "mount mode", lasts: true},
		{typ: HasSubresource, from: resource, to: resource},
		{typ: SnapshotOf, from: ts{TypeSnapshot}, to: resource, cause: toEnd},
		{typ: RestoresTo, from: ts{TypeSnapshot}, to: resource, cause: fromEnd},
		{typ: AttachedTo, from: resource, to: ts{TypeRun, TypeAgent}, attrs: "mode", lasts: true},
		{typ: ForkedFrom, from: ts{TypeBranch, TypeSubagent}, to: ts{TypeAgent, TypeRun, TypeEvent}, cause: toEnd},
		{typ: SpawnedFrom, from: ts{TypeSubagent}, to: agent, cause: toEnd},
		{typ: ActivatesPolicy, from: event, to: ts{TypePolicy}, cause: fromEnd},
		{typ: ProposesPolicy, from: event, to: ts{TypePolicy}, cause: fromEnd},
	}
}

// EdgeTypes are all types in the model's order.
func EdgeTypes() []EdgeType {
	return core.Map(relations(), func(r relation) EdgeType { return r.typ })
}

// Edge is a typed relation between two nodes.
type Edge struct {
	Type  EdgeType `json:"type"`
	From  NodeRef  `json:"from"`
	To    NodeRef  `json:"to"`
	Attrs Attrs    `json:"attrs,omitzero"`
	Valid `json:",embed"`
}

// Attrs are an edge's attributes; which there are follows from its type.
type Attrs struct {
	Seq   uint64 `json:"seq,omitzero"`
	List  string `json:"list,omitempty"`
	URI   string `json:"uri,omitempty"`
	Mount string `json:"mount,omitempty"`
	Mode  Mode   `json:"mode,omitempty"`
}

func (e Edge) check(f *problems, at Time) {
	all := relations()
	i := slices.IndexFunc(all, func(r relation) bool { return r.typ == e.Type })
	if i < 0 {
		oneOf(f, "type", e.Type, EdgeTypes()...)
		return
	}
	r := all[i]
	e.From.check(f, "from")
	e.To.check(f, "to")
	end(f, "from.type", r, e.From.Type, r.from)
	end(f, "to.type", r, e.To.Type, r.to)
	if e.From == e.To {
		f.add("to", "an edge leads to another node than its own")
	}
	for name, set := range map[string]bool{
		"seq": e.Attrs.Seq != 0, "list": e.Attrs.List != "", "uri": e.Attrs.URI != "", "mount": e.Attrs.Mount != "", "mode": e.Attrs.Mode != "",
	} {
		if set && !slices.Contains(strings.Fields(r.attrs), name) {
			f.add("attrs."+name, "an edge of type %s has none", e.Type)
		}
	}
	f.optional("attrs.list", e.Attrs.List)
	f.text("attrs.uri", e.Attrs.URI, maxURI)
	f.text("attrs.mount", e.Attrs.Mount, maxURI)
	maybe(f, "attrs.mode", e.Attrs.Mode, ReadOnly, ReadWrite)
	if e.Type == RunHasEvent || e.Type == AgentHasRun {
		f.add("type", "%s follows from the event itself", e.Type)
	}
	e.Valid.check(f, at)
}

// end checks the type of one end. An event may be named by what it stands for,
// and the other way round.
func end(f *problems, field string, r relation, given NodeType, allowed []NodeType) {
	if allowed == nil || slices.Contains(allowed, given) || given == "" ||
		given == TypeEvent && slices.ContainsFunc(allowed, NodeType.ofEvent) || given.ofEvent() && slices.Contains(allowed, TypeEvent) {
		return
	}
	f.add(field, "%q is no end of %s; allowed: %s", core.Clip(string(given)), r.typ, words(allowed))
}
