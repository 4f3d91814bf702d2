package dag

import (
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// check holds an event against what is recorded already. References to what is
// not here are let pass.
func (w *writer) check(e *Event, stream uint64, h *head) error {
	f := &problems{}
	if h.RunID != "" && h.AgentID != "" && e.AgentID != "" && h.AgentID != e.AgentID {
		f.add("agent_id", "run %s is of agent %q, not %q", core.Clip(e.RunID), core.Clip(h.AgentID), core.Clip(e.AgentID))
	}
	if h.Kinds[KindRunFinished] > 0 && e.RunID != "" && e.Kind != KindRunFinished && !follows(e.Kind) {
		f.add("run_id", "run %s has finished; a %s can't follow", core.Clip(e.RunID), e.Kind)
	}
	if err := w.checkNodes(e, f); err != nil {
		return err
	}
	var err error
	switch b := e.Body.(type) {
	case *ToolResult:
		err = w.checkResult(b, stream, f)
	case *RunStarted:
		if h.Kinds[KindRunStarted] > 0 {
			f.add("run_id", "run %s has started already", core.Clip(e.RunID))
		}
	case *RunFinished:
		if h.Kinds[KindRunFinished] > 0 {
			f.add("run_id", "run %s has finished already", core.Clip(e.RunID))
		}
	case *AgentForked:
		err = w.checkFork(e, b, f)
	case *SnapshotCreated:
		err = w.checkSnapshot(e, b, f)
	case *RestoreAttempted:
		err = w.checkRestore(e, b, f)
	}
	if err != nil {
		return err
	}
	if err := f.err(); err != nil {
		refused := core.AsError(err)
		refused.Code = core.Conflict // well formed, but not with what is here
		return refused
	}
	return nil
}

// follows reports what may be told of a run that has finished: its summary, and
// that it lets go of a resource.
func follows(k Kind) bool { return k == KindSnapshotMaterialized || k == KindResourceDetached }

// checkResult: a call has one result. An id may be used again by a call that follows.
func (w *writer) checkResult(b *ToolResult, stream uint64, f *problems) error {
	return callIDs.Within(w, record.Seq(stream).Text(b.CallID), nil, nil, true, func(_ record.Parts, found record.Found[[]byte]) (bool, error) {
		if kindOf(found) == KindToolResult.code() {
			f.add("call_id", "call %s has its result already", core.Clip(b.CallID))
		}
		return false, nil
	})
}

// checkFork: imperative resources, and those without restore, are kept by one
// branch, snapshotted where that is possible, or discarded.
func (w *writer) checkFork(e *Event, b *AgentForked, f *problems) error {
	branch, _, err := w.num(nameKey(NodeRef{TypeBranch, BranchID(e.AgentID, b.ToBranch)}))
	if err != nil {
		return err
	}
	if branch > 0 {
		taken := false
		err := outEdges.Within(w, record.Seq(branch).Byte(relationCode(ForkedFrom)), nil, nil, false, func(_ record.Parts, _ record.Found[struct{}]) (bool, error) {
			taken = true
			return false, nil
		})
		if err != nil {
			return err
		}
		if taken {
			f.add("to_branch", "agent %s has a branch %q already", core.Clip(e.AgentID), core.Clip(b.ToBranch))
		}
	}
	if _, pos, err := w.place(b.AtEvent.EventID); err != nil {
		return err
	} else if pos > 0 {
		at, err := w.event(pos)
		if err != nil {
			return err
		}
		if at.Event.AgentID != e.AgentID {
			f.add("at_event", "event %s is of agent %q, not %q", b.AtEvent.EventID, core.Clip(at.Event.AgentID), core.Clip(e.AgentID))
		}
	}
	for i, p := range b.VolumePlan {
		r, err := w.resource(e, p.Resource)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		field := fmt.Sprintf("volume_plan[%d]", i)
		if p.Mode == PlanSnapshot && !r.Can(CanSnapshot) {
			f.add(field+".mode", "resource %s can't be snapshotted; allowed: keep, discard", core.Clip(r.ID))
		}
		if p.Mode == PlanKeep && !r.Restorable() && !r.Can(CanShare) && p.KeptBy == "" {
			f.add(field+".kept_by", "missing: resource %s can't be restored, so one branch keeps it; allowed: %s, %s", core.Clip(r.ID), core.Clip(b.FromBranch), core.Clip(b.ToBranch))
		}
	}
	return nil
}

func (w *writer) checkSnapshot(e *Event, b *SnapshotCreated, f *problems) error {
	r, err := w.resource(e, b.ResourceRef)
	if err == nil && r != nil && b.Outcome == OutcomeOK && !r.Can(CanSnapshot) {
		f.add("outcome", "resource %s can't be snapshotted; allowed: error", core.Clip(r.ID))
	}
	return err
}

// checkRestore: restoring what is not restorable ends as unsupported.
func (w *writer) checkRestore(e *Event, b *RestoreAttempted, f *problems) error {
	if b.Outcome == OutcomeUnsupported {
		return nil
	}
	body, err := w.known(e, NodeRef{TypeSnapshot, b.SnapshotRef})
	if err != nil || body == nil {
		return err
	}
	s := body.(*Snapshot)
	if s.Restorable != nil && !*s.Restorable {
		f.add("outcome", "snapshot %s is not restorable; allowed: unsupported", core.Clip(s.ID))
	}
	r, err := w.resource(e, s.ResourceRef)
	if err == nil && r != nil && !r.Restorable() {
		f.add("outcome", "resource %s can't be restored; allowed: unsupported", core.Clip(r.ID))
	}
	return err
}

// resource is what is known of a resource; nil when it is only named.
func (w *writer) resource(e *Event, id string) (*Resource, error) {
	body, err := w.known(e, NodeRef{TypeResource, id})
	if err != nil || body == nil {
		return nil, err
	}
	return body.(*Resource), nil
}

// known is what is known of a node: what the event states of it, else its newest
// version, else what an event says that comes with it; nil when it is only named.
func (w *writer) known(e *Event, ref NodeRef) (NodeBody, error) {
	if body := statedIn(e, ref); body != nil {
		return body, nil
	}
	v, err := w.newest(ref)
	if err != nil {
		return nil, err
	}
	if v != nil {
		return v.Node.Body, nil
	}
	for i := range w.batch {
		if body := statedIn(&w.batch[i], ref); body != nil {
			return body, nil
		}
	}
	return nil, nil
}

func statedIn(e *Event, ref NodeRef) NodeBody {
	for _, n := range e.Nodes {
		if n.Ref() == ref {
			return n.Body
		}
	}
	return nil
}
