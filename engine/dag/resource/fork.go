package resource

import (
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/record"
)

// Forked is a fork that was made.
type Forked struct {
	AgentID    string `json:"agent_id"` // that was forked
	Name       string `json:"name"`     // of the new agent
	FromBranch string `json:"from_branch"`
	ToBranch   string `json:"to_branch"`
	AtEvent    string `json:"at_event"`
	Continued  string `json:"continued"`
	Dir        string `json:"dir,omitempty"`
	Task       string `json:"task,omitempty"`
	IntentID   string `json:"intent_id"`
	Parts      []Part `json:"resources"`

	Edited *dag.Edited `json:"edited,omitzero"` // the event as it is for the fork
}

// Fork makes a new agent that goes on from an event of another: with the
// conversation up to there, on a branch and in a directory of its own, and with
// the resources as planned. All of it is one intent: what a crash or failure
// cuts off is done later, or taken back.
func (r *Resources) Fork(ctx context.Context, by core.Caller, q ForkRequest) (Forked, error) {
	if err := operators(by, "fork"); err != nil {
		return Forked{}, err
	}
	p, err := r.Plan(ctx, by.Tenant, q)
	if err != nil {
		return Forked{}, err
	}
	for _, part := range p.Parts {
		if part.Hold.Since.IsZero() && part.managed { // its directory, which nothing looked after yet
			if _, err := r.attach(ctx, by, p.AgentID, part.Resource, Hold{Mode: dag.ReadWrite}); err != nil {
				return Forked{}, err
			}
		}
	}
	steps, args := p.steps()
	in, err := r.bringAbout(ctx, by, control.Spec{
		AgentID: p.AgentID, Subject: "fork:" + p.Name, Cause: dag.EventRef{EventID: p.AtEvent},
		Steps: append(steps, control.Step{Action: actFork, Args: core.MustEncode(args)}),
	})
	if err != nil {
		return Forked{}, err
	}
	return Forked{
		AgentID: p.AgentID, Name: p.Name, FromBranch: p.FromBranch, ToBranch: p.ToBranch, AtEvent: p.AtEvent,
		Continued: FromRecord, Dir: p.Dir, Task: p.Task, IntentID: in.IntentID, Parts: p.Parts, Edited: p.Edited,
	}, nil
}

// bringAbout has something done, and waits for it.
func (r *Resources) bringAbout(ctx context.Context, by core.Caller, spec control.Spec) (control.Intent, error) {
	in, err := r.opt.Intents.Intend(ctx, by, spec)
	if err == nil {
		in, err = r.opt.Intents.Await(ctx, by.Tenant, in.IntentID)
	}
	if err != nil || in.Status == control.Done {
		return in, err
	}
	for _, s := range in.Steps {
		if s.Error != nil {
			return in, core.Errorf(core.Code(s.Error.Code), "%s", s.Error.Message).With("intent_id", in.IntentID)
		}
	}
	return in, core.Errorf(core.Unavailable, "the intent %s is %s", in.IntentID, in.Status).With("intent_id", in.IntentID)
}

// forkArgs are the arguments of actFork. Its parts are what is planned; each
// of mode snapshot names the steps before that took and made it.
type forkArgs struct {
	Made       Made       `json:"made"`
	FromBranch string     `json:"from_branch"`
	Task       string     `json:"task,omitempty"`
	Parts      []forkPart `json:"parts"`
	// Edited is told in a run of the fork.
	Edited *dag.Edited `json:"edited,omitzero"`
}

type forkPart struct {
	Resource string `json:"resource"`
	Choice   `json:",embed"`
	Mode     dag.Mode `json:"access"`
	Mount    string   `json:"mount,omitempty"`
	Snapshot string   `json:"snapshot,omitempty"`
	Taken    int      `json:"taken,omitzero"`    // step, from 1
	Restored int      `json:"restored,omitzero"` // step, from 1
}

// steps are the effects of a fork before the agent is made.
func (p *Proposal) steps() (steps []control.Step, a forkArgs) {
	a = forkArgs{FromBranch: p.FromBranch, Task: p.Task, Parts: []forkPart{}, Edited: p.Edited, Made: Made{Name: p.Name, Dir: p.Dir, Origin: fleet.Origin{
		AgentID: p.AgentID, Branch: p.ToBranch, EventID: p.AtEvent, Kind: p.Kind, Continued: FromRecord,
		Since: p.source.CreatedAt, Alone: p.source.Alone,
	}}}
	for _, part := range p.Parts {
		fp := forkPart{Resource: part.Resource.ID, Choice: part.Choice, Mode: part.Hold.Mode, Mount: part.Hold.Mount}
		if part.Mode == dag.PlanSnapshot {
			if fp.Snapshot = part.SnapshotRef; fp.Snapshot == "" {
				steps = append(steps, control.Step{Action: actSnapshot, Args: core.MustEncode(stepArgs{Resource: part.Resource.ID})})
				fp.Taken = len(steps)
			}
			if part.makes() {
				steps = append(steps, control.Step{Action: actRestore, Args: core.MustEncode(stepArgs{
					Resource: part.Resource.ID, Snapshot: fp.Snapshot, Taken: fp.Taken, Dest: part.Dest,
				})})
				fp.Restored = len(steps)
			}
		}
		a.Made.Origin.Notes = append(a.Made.Origin.Notes, part.Resource.Name+": "+part.Note)
		a.Parts = append(a.Parts, fp)
	}
	return steps, a
}

// forking is the effect of actFork.
type forking struct{ r *Resources }

func (e forking) Probe(context.Context, control.Job) (control.Seen, error) {
	return control.Seen{Why: "the fork may not be there yet"}, nil
}

func (e forking) Act(ctx context.Context, j control.Job) (control.Seen, error) {
	var a forkArgs
	if err := core.DecodeStored(j.Args, &a); err != nil {
		return control.Seen{}, err
	}
	by := core.Self(j.Tenant, "resources")
	a.Made.Origin.Intent = j.IntentID
	plan, made, err := e.plan(ctx, j, a)
	if err != nil {
		return control.Seen{}, err
	}
	if e.r.ours(a.Made.Dir) { // which may be in what was made, and is there then
		if err := makeEmpty(a.Made.Dir); err != nil {
			return control.Seen{}, err
		}
	}
	if err := e.r.opt.Agents.Fork(ctx, by, a.Made); err != nil {
		return control.Seen{}, err
	}
	// Who has what changes with the record of it, and once. The intent's events tell of it.
	err = e.r.opt.Ledger.Append(ctx, by, func(tx *audit.Tx) error {
		if _, done, err := forks.Get(tx, record.Key(j.IntentID)); err != nil || done {
			return err
		}
		if err := e.tell(tx, j, a, plan, made); err != nil {
			return err
		}
		return forks.Put(tx, record.Key(j.IntentID), a.Made.Name)
	})
	if err != nil {
		return control.Seen{}, audit.Explain("record a fork", err)
	}
	result := map[string]string{"agent": a.Made.Name, "dir": a.Made.Dir}
	if a.Task != "" { // a fork without its task is a fork: why it has none is told
		asker := core.Caller{Tenant: j.Tenant, Name: j.By, Kind: j.ByKind, Door: core.DoorEngine}
		if err := e.r.opt.Agents.Assign(ctx, asker, a.Made.Name, a.Task, j.Key); err != nil && ctx.Err() == nil {
			result["task_refused"] = core.AsError(err).Message
		}
	}
	return control.Seen{Met: true, Result: core.MustEncode(result)}, nil
}

// plan is the plan as the record has it, and what the steps before have made,
// by the resource it was made of.
func (e forking) plan(ctx context.Context, j control.Job, a forkArgs) (plan []dag.VolumePlan, made map[string]dag.Resource, err error) {
	made = map[string]dag.Resource{}
	for _, p := range a.Parts {
		v := dag.VolumePlan{Resource: p.Resource, Mode: p.Choice.Mode, KeptBy: p.KeptBy}
		if p.Taken > 0 {
			got, err := earlier(j, p.Taken)
			if err != nil {
				return nil, nil, err
			}
			p.Snapshot = got.Snapshot
		}
		if p.Snapshot != "" {
			s, err := e.r.shot(ctx, j.Tenant, p.Snapshot)
			if err != nil {
				return nil, nil, err
			}
			v.SnapshotRef = &s.Snapshot.ExternalRef
		}
		if p.Restored > 0 {
			got, err := earlier(j, p.Restored)
			if err != nil {
				return nil, nil, err
			}
			if got.Resource != nil {
				made[p.Resource] = *got.Resource
			}
		}
		plan = append(plan, v)
	}
	return plan, made, nil
}

// tell records the fork, and who has what from now on.
func (e forking) tell(tx *audit.Tx, j control.Job, a forkArgs, plan []dag.VolumePlan, made map[string]dag.Resource) error {
	origin := a.Made.Origin
	err := e.r.tell(tx, dag.Head{
		AgentID: origin.AgentID, Parent: &dag.EventRef{EventID: origin.EventID},
		Nodes: []dag.Node{dag.NewNode(&dag.Subagent{
			ID: a.Made.Name, ParentAgentID: origin.AgentID,
			Constraints: core.MustEncode(map[string]string{"branch": origin.Branch, "continued": origin.Continued, "intent_id": j.IntentID, "since": dag.At(origin.Since).String()}),
		})},
	}, &dag.AgentForked{FromBranch: a.FromBranch, ToBranch: origin.Branch, AtEvent: dag.EventRef{EventID: origin.EventID}, VolumePlan: plan})
	if err == nil && a.Edited != nil {
		var told []dag.Event
		if told, err = a.Edited.Events(dag.Head{TS: dag.At(tx.Now()), RunID: dag.EditRun(j.IntentID), AgentID: a.Made.Name}); err == nil {
			_, err = e.r.opt.DAG.EmitIn(tx, told...)
		}
	}
	if err != nil {
		return err
	}
	for _, p := range a.Parts {
		part := Part{Choice: p.Choice}
		res, has := made[p.Resource]
		if part.has(origin.Branch) {
			k, err := keptIn(tx, p.Resource)
			if err != nil {
				return err
			}
			if k != nil {
				res, has = k.Resource, true
			}
		}
		if part.lost(origin.Branch) {
			if k, err := keptIn(tx, p.Resource); err != nil {
				return err
			} else if k != nil && k.Holders[origin.AgentID].Mode != "" {
				if err := lost.Put(tx, record.Text(j.IntentID).Last(p.Resource), k.Holders[origin.AgentID]); err != nil {
					return err
				}
				if _, err := e.r.detaching(tx, origin.AgentID, p.Resource); err != nil {
					return err
				}
			}
		}
		if has {
			if _, err := e.r.attaching(tx, a.Made.Name, res, Hold{Mode: p.Mode, Mount: p.Mount}); err != nil {
				return err
			}
		}
	}
	return nil
}
