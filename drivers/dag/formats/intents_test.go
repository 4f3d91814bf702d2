package formats_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/expect"
)

// intend has a controller carry n random intents out, whose effects see random
// events of the source, fail, and can't be taken back, as chance has it.
func (r *rig) intend(by core.Caller, s *source, n int) {
	r.t.Helper()
	c := control.New(control.Options{
		Ledger: r.ledger, DAG: r.DAG, Tenants: r.db.Tenants,
		Backoff: func(int) time.Duration { return time.Microsecond },
	})
	r.no(c.Register("chance", control.Kind{Effect: chance{s}, Attempts: 2}))
	ctx, stop := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	defer running.Wait()
	defer stop()
	for range n { // one after the other: the source is one goroutine's

		spec := control.Spec{AgentID: s.name("agent"), TaskID: pick(s, "", "task-1"), Subject: pick(s, "", "resource:"+s.name("res"))}
		if s.IntN(2) == 0 {
			spec.Cause = s.ref()
		}
		for range 1 + s.IntN(3) {
			spec.Steps = append(spec.Steps, control.Step{Action: "chance", Args: s.object(2)})
		}
		i := expect.Of(c.Intend(ctx, by, spec))(r.t)
		i = expect.Of(c.Await(ctx, by.Tenant, i.IntentID))(r.t)
		if i.Status == control.Stuck {
			expect.Of(c.Withdraw(ctx, by, i.IntentID, "enough"))(r.t)
		}
	}
}

// chance is an effect that does what the source says.
type chance struct{ *source }

func (e chance) Probe(context.Context, control.Job) (control.Seen, error) {
	return control.Seen{}, nil
}

func (e chance) Act(context.Context, control.Job) (control.Seen, error) { return e.sees() }

func (e chance) Compensate(context.Context, control.Job) (control.Seen, error) { return e.sees() }

func (e chance) sees() (control.Seen, error) {
	seen := control.Seen{Met: e.IntN(4) > 0, Why: pick(e.source, texts...), Result: e.object(1)}
	for range e.IntN(3) {
		h := e.head(false)
		kind := pick(e.source, dag.KindSnapshotCreated, dag.KindResourceAttached, dag.KindRestoreAttempted, dag.KindLivenessProbe, dag.KindAgentForked)
		made, err := dag.NewEvent(h, e.body(kind, &h))
		if err == nil {
			seen.Events = append(seen.Events, made)
		}
	}
	switch e.IntN(8) {
	case 0:
		return seen, errors.New(pick(e.source, texts...))
	case 1:
		return seen, core.Errorf(core.Conflict, "chance %s", fmt.Sprint(e.IntN(9)))
	}
	return seen, nil
}
