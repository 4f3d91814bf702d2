package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

// Get reads an intent with what its steps want and came to.
func (c *Controller) Get(ctx context.Context, by core.Caller, id string) (Intent, error) {
	id, err := c.local(ctx, by, id)
	if err != nil {
		return Intent{}, err
	}
	var out Intent
	err = c.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		i, err := c.intents.Need(tx, id)
		if err == nil {
			err = c.show(tx, i)
		}
		if err != nil {
			return err
		}
		out = *i
		for n := range out.Steps {
			if err := c.fill(tx, &out.Steps[n]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, audit.Explain("read intent "+id, err)
}

// fill reads a step's arguments and result from the record.
func (c *Controller) fill(tx store.Tx, s *StepState) error {
	call, err := c.dag.GetIn(tx, s.Call)
	if err != nil {
		return err
	}
	s.Args = call.Event.Body.(*dag.ToolCall).Args
	if s.End == "" {
		return nil
	}
	end, err := c.dag.GetIn(tx, s.End)
	if err != nil {
		return err
	}
	if b := end.Event.Body.(*dag.ToolResult); b.Status == dag.CallOK {
		s.Result = b.Result
	}
	return nil
}

// show adds to an intent what it waits for.
func (c *Controller) show(tx *audit.Tx, i *Intent) error {
	if i.Status.Over() {
		return nil
	}
	if i.Epoch == tx.Epoch() {
		i.Why = join(i.Why, "the engine works on it")
		return nil
	}
	if i.Turn > 0 && i.Status == Open {
		whose, err := first(tx, i.Subject)
		if err != nil {
			return err
		}
		if whose != i.IntentID && whose != "" {
			i.Before = whose
			i.Why = join(i.Why, fmt.Sprintf("%s comes first with %s", i.Before, i.Subject))
			return nil
		}
	}
	if i.Status == Open || i.Status == Undoing {
		i.Why = join(i.Why, "tried "+waitsUntil(i.NextAt, tx.Now()))
	}
	return nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// List lists intents, newest first; openOnly leaves out those that are over. A
// page of all, or of the open ones, costs the same wherever it stands; a filter
// reads through them. f.Kind is an action, f.Match looks at id, subject, agent
// and why.
func (c *Controller) List(ctx context.Context, tenant string, f core.Filter, openOnly bool) (page core.Page[Intent], err error) {
	q := record.Query[*Intent]{}
	if q.Filter, err = f.Check(); err != nil {
		return page, err
	}
	if openOnly {
		q.Along, q.Word = bOpen, open
	}
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if q.Filter.Narrows() {
			q.Match = func(i *Intent) (bool, error) {
				err := c.show(tx, i)
				return i.matches(q.Filter), err
			}
		}
		if page, err = record.Paged(c.intents.Page(ctx, tx, q)); err != nil || q.Match != nil {
			return err
		}
		for n := range page.Items {
			err = errors.Join(err, c.show(tx, &page.Items[n]))
		}
		return err
	})
	return page, audit.Explain("list the intents", err)
}

func (i *Intent) matches(f core.Filter) bool {
	does := func(s StepState) bool { return core.Wants(f.Kind, s.Action) }
	return slices.ContainsFunc(i.Steps, does) && core.Wants(f.Status, string(i.Status)) && core.Wants(f.Agent, i.AgentID) && core.Wants(f.Session, i.SessionID) &&
		core.Wants(f.Trace, i.TraceID) && core.Wants(f.Task, i.TaskID) &&
		f.Finds(i.IntentID, i.Subject, i.AgentID, i.Why)
}
