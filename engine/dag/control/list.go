package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/store"
)

// Get reads an intent with what its steps want and came to.
func (c *Controller) Get(ctx context.Context, by core.Caller, id string) (Intent, error) {
	seq, err := c.local(ctx, by, id)
	if err != nil {
		return Intent{}, err
	}
	var out Intent
	err = c.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		if out, err = c.shown(tx, seq); err != nil {
			return err
		}
		for n := range out.Steps {
			if err := c.fill(tx, &out.Steps[n]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, explain("read intent "+id, err)
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

// shown is an intent with who has it, and what it waits for.
func (c *Controller) shown(tx *audit.Tx, seq uint64) (Intent, error) {
	i, d, err := read(tx, seq)
	if err != nil || i.Status.Over() {
		return i, err
	}
	if d.Due != 0 {
		i.NextAt = time.UnixMicro(d.Due).UTC()
	}
	if d.Lease != nil && d.Lease.Epoch == tx.Epoch() && d.Lease.Until.After(tx.Now()) {
		i.Lease = d.Lease
		i.NextAt = time.Time{}
		i.Why = join(i.Why, fmt.Sprintf("%s works on it", d.Lease.Owner))
		return i, nil
	}
	if i.Turn > 0 && i.Status == Open {
		whose, err := first(tx, i.Subject)
		if err != nil {
			return i, err
		}
		if whose != seq && whose != 0 {
			i.Before = core.NewID(core.IntentPrefix, tx.Tenant(), whose)
			i.Why = join(i.Why, fmt.Sprintf("%s comes first with %s", i.Before, i.Subject))
			return i, nil
		}
	}
	if i.Status == Open || i.Status == Undoing {
		i.Why = join(i.Why, "tried "+waitsUntil(i.NextAt, tx.Now()))
	}
	return i, nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// List lists intents, newest first; open leaves out those that are over. A page
// of all, or of the open ones, costs the same wherever it stands; a filter reads
// through them. f.Kind is an action, f.Match looks at id, subject, agent and why.
func (c *Controller) List(ctx context.Context, tenant string, f core.Filter, open bool) (core.Page[Intent], error) {
	var none core.Page[Intent]
	f, err := f.Check()
	if err != nil {
		return none, err
	}
	var items []Intent
	total := 0
	narrow := f.Narrows()
	from := ^uint64(0)
	for more := true; more && err == nil; {
		if err = ctx.Err(); err != nil {
			break
		}
		err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
			bucket, count := bIntent, countAll
			if open {
				bucket, count = bDesk, countOpen
			}
			n, skip := 0, f.Offset()
			if !narrow {
				total = int(tx.Counter(count))
				if bucket == bIntent { // its keys have no gap
					from, skip = key64(total-skip), 0
				}
			}
			more = false
			var seqs []uint64
			scanErr := tx.Scan(bucket, nil, key(from), true, func(k, _ []byte) bool {
				from = get(k)
				n++
				if !narrow && n <= skip {
					return true
				}
				seqs = append(seqs, from)
				more = narrow && n == scanAtOnce
				return !more && (narrow || len(seqs) < f.Size)
			})
			if scanErr != nil {
				return scanErr
			}
			for _, seq := range seqs {
				i, err := c.shown(tx, seq)
				if err != nil {
					return err
				}
				if narrow && !i.matches(f) {
					continue
				}
				if narrow {
					total++
				}
				if (!narrow || total > f.Offset()) && len(items) < f.Size {
					items = append(items, i)
				}
			}
			return nil
		})
	}
	if err != nil {
		return none, explain("list the intents", err)
	}
	return core.NewPage(items, f, total), nil
}

// scanAtOnce is how many intents one transaction of a long search reads.
const scanAtOnce = 1000

// key64 is the first key after intent n, as Scan bounds it.
func key64(n int) uint64 { return uint64(max(n, 0)) + 1 }

func (i *Intent) matches(f core.Filter) bool {
	same := func(want, got string) bool { return want == "" || want == got }
	action := f.Kind == ""
	for _, s := range i.Steps {
		action = action || s.Action == f.Kind
	}
	text := strings.ToLower(strings.Join([]string{i.IntentID, i.Subject, i.AgentID, i.Why}, "\n"))
	return action && same(f.Status, string(i.Status)) && same(f.Agent, i.AgentID) && same(f.Session, i.SessionID) &&
		same(f.Trace, i.TraceID) && same(f.Task, i.TaskID) &&
		(f.Since.IsZero() || !i.CreatedAt.Before(f.Since)) && (f.Until.IsZero() || !i.CreatedAt.After(f.Until)) &&
		(f.Match == "" || strings.Contains(text, strings.ToLower(f.Match)))
}

// Figures count a tenant's intents.
type Figures struct {
	Intents int64 `json:"intents"`
	Open    int64 `json:"open"`
}

// Figures counts without a scan.
func (c *Controller) Figures(ctx context.Context, tenant string) (f Figures, err error) {
	err = c.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		f = Figures{tx.Counter(countAll), tx.Counter(countOpen)}
		return nil
	})
	return f, explain("count the intents", err)
}
