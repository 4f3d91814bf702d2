package resource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/fleet"
)

// Restore makes the state of a snapshot again: as a new resource dest, or in
// the place of the resource itself when dest is "". What is imperative is
// unsupported: that is recorded, and the error.
func (r *Resources) Restore(ctx context.Context, by core.Caller, snapshot, dest string) (View, error) {
	s, err := r.shot(ctx, by.Tenant, snapshot)
	if err != nil {
		return View{}, err
	}
	k, err := r.kept(ctx, by.Tenant, s.Snapshot.ResourceRef)
	if err != nil {
		return View{}, err
	}
	if !k.Resource.Restorable() {
		return View{}, r.unsupported(ctx, by, k, s)
	}
	if err := r.keptAway(&s); err != nil {
		return View{}, err
	}
	if !utf8.ValidString(dest) {
		return View{}, core.Invalid("to", fmt.Sprintf("%q", dest), "a name that is text")
	}
	action := actRestore
	if dest == "" {
		action = actReplace
		if err := r.idle(ctx, by.Tenant, k); err != nil {
			return View{}, err
		}
	}
	made, err := r.intend(ctx, by, k, action, stepArgs{Resource: k.Resource.ID, Snapshot: snapshot, Dest: dest})
	if err != nil {
		return View{}, err
	}
	if dest == "" {
		return r.view(ctx, by.Tenant, k)
	}
	return r.view(ctx, by.Tenant, kept{Resource: *made.Resource})
}

// unsupported records a restore of what can't be restored.
func (r *Resources) unsupported(ctx context.Context, by core.Caller, k kept, s shot) error {
	why := "it is imperative"
	if !k.Resource.Imperative {
		why = "it has not the capability restore"
	}
	err := r.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := log(tx, "restore_refused", k.Resource.ID, map[string]any{"snapshot_id": s.Snapshot.ID, "reason": why}); err != nil {
			return err
		}
		return r.tell(tx, dag.Head{AgentID: someHolder(k)}, &dag.RestoreAttempted{
			SnapshotRef: s.Snapshot.ID, Outcome: dag.OutcomeUnsupported, Error: &dag.Fault{Code: "unsupported", Message: why},
		})
	})
	if err != nil {
		return audit.Explain("record a restore", err)
	}
	return core.Errorf(core.Conflict, "snapshot: unsupported: %s can't be restored: %s", k.Resource.ID, why).
		With("field", "snapshot").With("outcome", "unsupported")
}

// idle refuses to replace what somebody works in.
func (r *Resources) idle(ctx context.Context, tenant string, k kept) error {
	for name := range k.Holders {
		a, err := r.opt.Agents.Agent(ctx, tenant, name)
		if errors.Is(err, core.Kind(core.NotFound)) {
			continue
		}
		if err != nil {
			return err
		}
		if a.Running {
			return core.Errorf(core.Conflict, "resource: agent %s works in %s: stop it first, or give a destination", name, k.Resource.Name).With("field", "resource")
		}
	}
	return nil
}

// restoring is the effect of actRestore and actReplace.
type restoring struct{ r *Resources }

// Probe implements control.Effect. The driver knows best whether it is done:
// Act asks it.
func (restoring) Probe(context.Context, control.Job) (control.Seen, error) {
	return control.Seen{Why: "it may not be restored yet"}, nil
}

// of reads what a step is about.
func (e restoring) of(ctx context.Context, j control.Job) (a stepArgs, s shot, d Driver, err error) {
	if err = core.DecodeStored(j.Args, &a); err != nil {
		return a, s, nil, err
	}
	if a.Snapshot == "" {
		before, err := earlier(j, a.Taken)
		if err != nil {
			return a, s, nil, err
		}
		a.Snapshot = before.Snapshot
	}
	if s, err = e.r.shot(ctx, j.Tenant, a.Snapshot); err != nil {
		return a, s, nil, err
	}
	if d, err = e.r.driver(&s.Resource); err == nil {
		err = e.r.keptAway(&s)
	}
	return a, s, d, err
}

func (e restoring) Act(ctx context.Context, j control.Job) (control.Seen, error) {
	a, s, d, err := e.of(ctx, j)
	if err == nil && a.Dest == "" {
		var k kept
		if k, err = e.r.kept(ctx, j.Tenant, a.Resource); err == nil {
			err = e.r.idle(ctx, j.Tenant, k)
		}
	}
	if err == nil && e.r.ours(a.Dest) {
		err = os.MkdirAll(filepath.Dir(a.Dest), 0o711) // agents of other users pass
	}
	var made dag.Resource
	if err == nil {
		made, err = d.Restore(ctx, j.Tenant, idOf("restore-", j.Key), s.Snapshot, s.Resource, a.Dest)
	}
	body := &dag.RestoreAttempted{SnapshotRef: a.Snapshot, Outcome: dag.OutcomeOK}
	head := dag.Head{TS: dag.At(e.r.opt.Ledger.Clock().Now()), AgentID: j.AgentID}
	if err != nil {
		fault := core.AsError(err)
		body.Outcome, body.Error = dag.OutcomeError, &dag.Fault{Code: string(fault.Code), Message: fault.Message}
	}
	seen := control.Seen{Met: err == nil}
	if err == nil && a.Dest != "" {
		body.NewResourceRef = made.ID
		head.Nodes = []dag.Node{dag.NewNode(&made)}
		seen.Result = core.MustEncode(stepResult{Snapshot: a.Snapshot, Resource: &made})
		err = e.r.adopt(ctx, j.Tenant, made)
	} else if err == nil {
		seen.Result = core.MustEncode(stepResult{Snapshot: a.Snapshot})
	}
	if a.Snapshot == "" {
		return seen, err
	}
	told, bad := dag.NewEvent(head, body)
	seen.Events = []dag.Event{told}
	return seen, errors.Join(err, bad)
}

// adopt looks after what a restore made.
func (r *Resources) adopt(ctx context.Context, tenant string, res dag.Resource) error {
	err := r.opt.Ledger.Update(ctx, core.Self(tenant, "resources"), func(tx *audit.Tx) error {
		known, err := keptIn(tx, res.ID)
		if err != nil || known != nil {
			return err
		}
		if err := log(tx, "made", res.ID, map[string]any{"name": res.Name}); err != nil {
			return err
		}
		return save(tx, kept{Resource: res, Place: r.opt.Place})
	})
	return audit.Explain("note a resource", err)
}

// ours reports a destination among the directories of forks.
func (r *Resources) ours(dest string) bool {
	return r.opt.Dir != "" && strings.HasPrefix(dest, r.opt.Dir+string(filepath.Separator))
}

// Compensate implements control.Effect: a new resource goes again, and the
// directory that was made for it.
func (e restoring) Compensate(ctx context.Context, j control.Job) (control.Seen, error) {
	a, s, d, err := e.of(ctx, j)
	if errors.Is(err, core.Kind(core.InvalidInput)) || errors.Is(err, core.Kind(core.NotFound)) {
		return control.Seen{Met: true}, nil // nothing to be restored was ever found
	}
	if err != nil {
		return control.Seen{}, err
	}
	err = d.Undo(ctx, j.Tenant, idOf("restore-", j.Key), s.Resource, a.Dest)
	if errors.Is(err, core.Kind(core.InvalidInput)) || errors.Is(err, core.Kind(core.NotFound)) {
		err = nil // a place that can't be has nothing in it
	}
	if err == nil && e.r.ours(a.Dest) {
		err = e.r.clear(filepath.Dir(a.Dest))
	}
	return control.Seen{Met: err == nil}, err
}

// makeEmpty makes an empty directory for a fork, which may be there already.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { // agents of other users pass
		return fmt.Errorf("make a directory for a fork: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make a directory for a fork: %w", err)
	}
	return nil
}

// Past is what a fork is told of before its first prompt: the conversation that
// it goes on from, as the record has it. dir is where it works.
func (r *Resources) Past(ctx context.Context, tenant string, o fleet.Origin, dir string) (string, error) {
	edited, err := r.opt.DAG.EditOf(ctx, tenant, o.Intent)
	if err != nil {
		return "", err
	}
	c, err := r.opt.DAG.Conversation(ctx, tenant, dag.ConversationQuery{Event: o.EventID, Since: o.Since, Run: o.Alone, Instead: edited})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "You go on with work that agent %s began: you are its fork %s, from the event %s (%s).\n", o.AgentID, o.Branch, short(o.EventID), o.Kind)
	b.WriteString("This is the record of what was said and done up to there, oldest first, one JSON object on each line. " +
		"It is your conversation so far, not something to do again.\n")
	if c.Left {
		b.WriteString("What came before its first line is left out.\n")
	}
	b.WriteString("<record>\n")
	for _, line := range c.Lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteString("</record>\n")
	if edited != "" {
		b.WriteString("Its last line was changed by who forked you; go on from it as it stands.\n")
	}
	for _, call := range c.Open {
		fmt.Fprintf(&b, "The call %q of %q was asked for and has not been carried out here.\n", call.CallID, call.Tool)
	}
	if dir != "" {
		fmt.Fprintf(&b, "You work in %s from now on; paths in the record may name the directory of %s.\n", dir, o.AgentID)
	}
	for _, n := range o.Notes {
		b.WriteString(n + ".\n")
	}
	return b.String(), nil
}
