package dag

import "slices"

// surroundings are what an event's edges need to know beside the event.
type surroundings struct {
	seq     uint64 // place in its run
	call    string // of a tool_result: the event of its call, "" when there is none
	request string // of a model_response: the event of its request, "" when there is none
}

// derive lists the edges of an event: those that follow from its kind, from
// the nodes that it states, and those it carries.
//
//	every event of a run     Run RUN_HAS_EVENT Event; of the first also Agent AGENT_HAS_RUN Run
//	names a parent           Event DERIVED_FROM it
//	model_request            Event EVENT_CONSUMES each input
//	model_response           Event EVENT_PRODUCES its messages; Generation DERIVED_FROM its request
//	history_append           Run APPENDED_TO_HISTORY Message; Event EVENT_CONSUMES it unless it states it
//	tool_call                requested_by CALLS_TOOL ToolCall
//	tool_result              ToolCall RETURNS_RESULT ToolResult
//	mcp.resource_updated     Event MCP_RESOURCE_UPDATED Resource
//	policy_activated         Event ACTIVATES_POLICY Policy
//	interruption             Event INTERRUPTS each that it affects
//	substitution             replacement SUBSTITUTES original
//	agent_forked             Event DERIVED_FROM the event that it is forked at;
//	                         Branch, and each Subagent that it states, FORKED_FROM the event and the agent;
//	                         Event EVENT_CONSUMES each planned resource
//	run_finished             Event EVENT_PRODUCES Summary, which SUMMARIZES Run
//	snapshot_materialized    Event EVENT_PRODUCES RunSnapshot, which is DERIVED_FROM Run
//	snapshot_created         Event EVENT_CONSUMES Resource; ok: EVENT_PRODUCES Snapshot, which is SNAPSHOT_OF it
//	resource_attached        Resource ATTACHED_TO Run or Agent; Run MOUNTS_RESOURCE Resource
//	resource_liveness_probe  Event EVENT_CONSUMES Resource
//	restore_attempted        Event DERIVED_FROM Snapshot; ok: Snapshot RESTORES_TO Resource
//
//	states a Message         Event EVENT_PRODUCES it
//	states a Snapshot        it is SNAPSHOT_OF its resource
//	states a Resource        its scope's Agent and Run OWNS_RESOURCE
//	states a Handle          it is DERIVED_FROM its resource
//	states a Subagent        it is SPAWNED_FROM its parent
//	states a Policy          a proposal: Event PROPOSES_POLICY it
func derive(e *Event, at surroundings) []Edge {
	d := &deriver{e: e, self: NodeRef{TypeEvent, e.EventID}}
	if e.RunID != "" {
		if at.seq == 1 && e.AgentID != "" {
			d.add(AgentHasRun, NodeRef{TypeAgent, e.AgentID}, d.run())
		}
		d.edges = append(d.edges, Edge{Type: RunHasEvent, From: d.run(), To: d.self, Attrs: Attrs{Seq: at.seq}})
	}
	if e.Parent != nil {
		d.add(DerivedFrom, d.self, event(*e.Parent))
	}
	d.kind(at)
	for _, n := range e.Nodes {
		d.node(n)
	}
	for _, edge := range e.Edges {
		d.put(edge)
	}
	return d.edges
}

type deriver struct {
	e     *Event
	self  NodeRef
	edges []Edge
	seen  map[Edge]bool // of all edges, once they are many
}

// put adds an edge once: an explicit one may repeat what follows anyway.
func (d *deriver) put(e Edge) {
	const few = 8
	switch {
	case len(d.edges) < few && slices.Contains(d.edges, e) || d.seen[e]:
		return
	case len(d.edges) >= few:
		if d.seen == nil {
			d.seen = map[Edge]bool{}
			for _, known := range d.edges {
				d.seen[known] = true
			}
			if d.seen[e] {
				return
			}
		}
		d.seen[e] = true
	}
	d.edges = append(d.edges, e)
}

func (d *deriver) add(t EdgeType, from, to NodeRef) { d.put(Edge{Type: t, From: from, To: to}) }

func (d *deriver) run() NodeRef { return NodeRef{TypeRun, d.e.RunID} }

// holder is whom a resource is attached to: the run, or the agent outside any.
func (d *deriver) holder() NodeRef {
	if d.e.RunID != "" {
		return d.run()
	}
	return NodeRef{TypeAgent, d.e.AgentID}
}

func (d *deriver) produces(t NodeType, id string) {
	if id != "" {
		d.add(EventProduces, d.self, NodeRef{t, id})
	}
}

func (d *deriver) consumes(t NodeType, id string) { d.add(EventConsumes, d.self, NodeRef{t, id}) }

func (d *deriver) states(ref NodeRef) bool {
	return slices.ContainsFunc(d.e.Nodes, func(n Node) bool { return n.Ref() == ref })
}

func event(r EventRef) NodeRef { return NodeRef{TypeEvent, r.EventID} }

func (d *deriver) kind(at surroundings) {
	switch b := d.e.Body.(type) {
	case *ModelRequest:
		for _, in := range b.InputRefs {
			if in.Event != "" {
				d.consumes(TypeEvent, in.Event)
			} else {
				d.consumes(TypeMessage, in.Message)
			}
		}
	case *ModelResponse:
		d.produces(TypeMessage, b.OutputRef)
		d.produces(TypeMessage, b.ReasoningRef)
		if at.request != "" {
			d.add(DerivedFrom, NodeRef{TypeGeneration, d.e.EventID}, NodeRef{TypeEvent, at.request})
		}
	case *HistoryAppend:
		m := NodeRef{TypeMessage, b.MessageRef}
		if !d.states(m) {
			d.consumes(m.Type, m.ID)
		}
		d.put(Edge{Type: AppendedToHistory, From: d.run(), To: m, Attrs: Attrs{List: b.List}})
	case *ToolCall:
		d.add(CallsTool, event(b.RequestedBy), NodeRef{TypeToolCall, d.e.EventID})
	case *ToolResult:
		if at.call != "" {
			d.add(ReturnsResult, NodeRef{TypeToolCall, at.call}, NodeRef{TypeToolResult, d.e.EventID})
		}
	case *MCPResourceUpdated:
		d.put(Edge{Type: MCPResourceChanged, From: d.self, To: NodeRef{TypeResource, MCPResourceID(b.Server, b.URI)}, Attrs: Attrs{URI: b.URI}})
	case *PolicyActivated:
		d.add(ActivatesPolicy, d.self, NodeRef{TypePolicy, b.PolicyRef})
	case *Interruption:
		for _, r := range b.Affects {
			d.add(Interrupts, d.self, event(r))
		}
	case *Substitution:
		d.add(Substitutes, event(b.ReplacementEvent), event(b.OriginalEvent))
	case *AgentForked:
		d.forked(b)
	case *RunFinished:
		if b.SummaryRef != nil {
			s := NodeRef{TypeSummary, b.SummaryRef.Kind + ":" + b.SummaryRef.ID}
			d.produces(s.Type, s.ID)
			d.add(Summarizes, s, d.run())
		}
	case *SnapshotMaterialized:
		d.produces(TypeRunSnapshot, b.SnapshotRef)
		d.add(DerivedFrom, NodeRef{TypeRunSnapshot, b.SnapshotRef}, d.run())
	default:
		d.resource()
	}
}

func (d *deriver) forked(b *AgentForked) {
	d.add(DerivedFrom, d.self, event(b.AtEvent))
	forks := []NodeRef{{TypeBranch, BranchID(d.e.AgentID, b.ToBranch)}}
	for _, n := range d.e.Nodes {
		if n.Type == TypeSubagent {
			forks = append(forks, n.Ref())
		}
	}
	for _, f := range forks {
		d.add(ForkedFrom, f, event(b.AtEvent))
		d.add(ForkedFrom, f, NodeRef{TypeAgent, d.e.AgentID})
	}
	for _, p := range b.VolumePlan {
		d.consumes(TypeResource, p.Resource)
	}
}

func (d *deriver) resource() {
	switch b := d.e.Body.(type) {
	case *SnapshotCreated:
		d.consumes(TypeResource, b.ResourceRef)
		if b.Outcome == OutcomeOK {
			d.produces(TypeSnapshot, b.SnapshotRef)
			d.add(SnapshotOf, NodeRef{TypeSnapshot, b.SnapshotRef}, NodeRef{TypeResource, b.ResourceRef})
		}
	case *ResourceAttached:
		r := NodeRef{TypeResource, b.ResourceRef}
		d.put(Edge{Type: AttachedTo, From: r, To: d.holder(), Attrs: Attrs{Mode: b.Mode}})
		if d.e.RunID != "" {
			d.put(Edge{Type: MountsResource, From: d.run(), To: r, Attrs: Attrs{Mount: b.Mount, Mode: b.Mode}})
		}
	case *LivenessProbe:
		d.consumes(TypeResource, b.ResourceRef)
	case *RestoreAttempted:
		snapshot := NodeRef{TypeSnapshot, b.SnapshotRef}
		d.add(DerivedFrom, d.self, snapshot)
		if b.NewResourceRef != "" {
			d.add(RestoresTo, snapshot, NodeRef{TypeResource, b.NewResourceRef})
		}
	}
}

// node adds the edges that follow from a node which the event states.
func (d *deriver) node(n Node) {
	ref := n.Ref()
	add := func(t EdgeType, from, to NodeRef) {
		e := Edge{Type: t, From: from, To: to}
		if t == OwnsResource {
			e.Valid = n.Valid
		}
		d.put(e)
	}
	switch b := n.Body.(type) {
	case *Message:
		d.produces(TypeMessage, b.ID)
	case *Snapshot:
		add(SnapshotOf, ref, NodeRef{TypeResource, b.ResourceRef})
	case *Resource:
		if b.Scope != nil && b.Scope.AgentID != "" {
			add(OwnsResource, NodeRef{TypeAgent, b.Scope.AgentID}, ref)
		}
		if b.Scope != nil && b.Scope.RunID != "" {
			add(OwnsResource, NodeRef{TypeRun, b.Scope.RunID}, ref)
		}
	case *Handle:
		add(DerivedFrom, ref, NodeRef{TypeResource, b.ResourceRef})
	case *Subagent:
		add(SpawnedFrom, ref, NodeRef{TypeAgent, b.ParentAgentID})
	case *Policy:
		if b.Kind == PolicyProposal {
			add(ProposesPolicy, d.self, ref)
		}
	}
}

// MCPResourceID is the node id of a resource that an MCP server has.
func MCPResourceID(server, uri string) string { return "mcp:" + server + ":" + uri }

// BranchID is the node id of an agent's branch.
func BranchID(agent, branch string) string { return agent + "/" + branch }
