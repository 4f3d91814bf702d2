// Package trend keeps how a tenant was doing over time, in few figures: each minute of
// the last hour, each quarter of the last day and each hour of the last week. Each has a
// place of its own, which the next of its kind takes over, so there are never more.
//
// A minute is a look at figures that are in memory, so work costs nothing for it. What
// was spent between the last look and a crash is in no point; budgets and agents have it.
package trend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
)

// Span is a time that is told in points.
type Span struct {
	Name  string
	Step  time.Duration // of a point
	Count int           // of the points that are kept
}

// Spans are those that are kept, the shortest first.
func Spans() []Span {
	return []Span{{"hour", time.Minute, 60}, {"day", 15 * time.Minute, 96}, {"week", time.Hour, 168}}
}

// maxSpent bounds the agents that a point names; the others are in its sums.
const maxSpent = 100

// Figures are how things are at a moment, or were at most within a point.
type Figures struct {
	Working int   `json:"working"` // agents
	Waiting int   `json:"waiting"` // agents that wait for a person
	Failing int   `json:"failing"` // agents that can't work
	Idle    int   `json:"idle"`
	Paused  int   `json:"paused"`
	Offline int   `json:"offline"` // or in a state of no other figure
	Queued  int64 `json:"queued"`  // tasks
	Asking  int   `json:"asking"`  // open questions
	WaitS   int64 `json:"wait_s"`  // how long the oldest of them has waited, in seconds
}

// Count counts an agent, or a part of one, by the word that all of them show.
func (f *Figures) Count(state string) {
	switch state {
	case "working", "busy", "starting", "stopping":
		f.Working++
	case "waiting for you", "stuck":
		f.Waiting++
	case "failed":
		f.Failing++
	case "idle":
		f.Idle++
	case "paused", "pausing":
		f.Paused++
	default:
		f.Offline++
	}
}

// Spent is what an agent, or a project, has done and used.
type Spent struct {
	Name    string  `json:"name"`
	Project string  `json:"project,omitempty"`
	Tasks   int64   `json:"tasks"`
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	// State is a word that Count knows, of an agent in a look.
	State string `json:"-"`
}

func (s *Spent) add(o Spent) {
	s.Tasks, s.Tokens, s.CostUSD = s.Tasks+o.Tasks, s.Tokens+o.Tokens, s.CostUSD+o.CostUSD
}

// Point is one of a span: the most of each figure within it, and what was done.
type Point struct {
	TenantID string    `json:"tenant_id"`
	Span     string    `json:"span"`
	From     time.Time `json:"from"`
	Figures
	Done    int64   `json:"done"`   // tasks that succeeded
	Failed  int64   `json:"failed"` // that failed, ran out of time or were blocked
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	// By is who did it, by name; at most 100, who cost most.
	By []Spent `json:"by,omitempty"`
}

// Now is a look at a tenant: its figures, and what was done so far.
type Now struct {
	Figures
	Done, Failed int64
	Agents       []Spent // in the order of their names
}

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Clock   core.Clock
	Health  *health.Troubles
	Tenants func(context.Context) ([]string, error)
	Look    func(tenant string) (Now, error)
	// Away is when nobody was here last; nil is not known.
	Away func(tenant string) (from, until time.Time)
}

// Trends keeps the points of every tenant. It is safe for concurrent use.
type Trends struct {
	opt  Options
	kind record.Table[Point]
	loop *loop.Loop

	mu   sync.Mutex
	last map[string]*Now // at the newest look
}

const bucket = "trend"

// New makes the service; Run looks.
func New(opt Options) *Trends {
	if opt.Clock == nil {
		opt.Clock = core.SystemClock{}
	}
	t := &Trends{opt: opt, last: map[string]*Now{}}
	t.kind = &record.Kind[*Point]{Noun: "trend", Bucket: bucket, Ledger: opt.Ledger, ID: slot, Quiet: true}
	t.loop = loop.New(loop.Options{Component: "trends", Health: opt.Health, Clock: opt.Clock, Tenants: opt.Tenants, Pass: t.pass})
	opt.Ledger.Register(t.kind.Auditable())
	return t
}

// Run looks at every tenant each minute, until ctx ends.
func (t *Trends) Run(ctx context.Context) error { return t.loop.Run(ctx) }

// Made has a tenant looked at that there was not when Run began.
func (t *Trends) Made(tenant string) { t.loop.Due(tenant, time.Time{}) }

// slot is the place of a point: that of its time among those that its span keeps.
func slot(p *Point) string {
	for _, s := range Spans() {
		if s.Name == p.Span {
			return fmt.Sprintf("%s-%03d", s.Name, p.From.Unix()/int64(s.Step/time.Second)%int64(s.Count))
		}
	}
	return p.Span
}

// pass looks at a tenant, and keeps what came since the last look.
func (t *Trends) pass(ctx context.Context, tenant string, _ bool) (next time.Time, err error) {
	at := t.opt.Clock.Now().UTC()
	next = at.Truncate(time.Minute).Add(time.Minute)
	now, err := t.opt.Look(tenant)
	if err != nil {
		return next, err
	}
	if last := t.newest(tenant); last != nil {
		if p := since(last, &now); !p.quiet() {
			p.TenantID = tenant
			err = t.keep(ctx, at, p)
		}
	}
	if err == nil { // else what came since is of the next look
		t.mu.Lock()
		t.last[tenant] = &now
		t.mu.Unlock()
	}
	return next, err
}

// newest is the look before, nil for none.
func (t *Trends) newest(tenant string) *Now {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last[tenant]
}

// keep adds what came until a time to the point of each span that it is of.
func (t *Trends) keep(ctx context.Context, at time.Time, p Point) error {
	return t.opt.Ledger.Append(ctx, core.Self(p.TenantID, "trends"), func(tx *audit.Tx) error {
		for _, s := range Spans() {
			p := p
			p.Span, p.From = s.Name, at.Add(-time.Second).Truncate(s.Step) // a look at its end is its own
			old, err := t.kind.Load(tx, slot(&p))
			if err != nil {
				return err
			}
			if old != nil && old.From.Equal(p.From) {
				p.join(old)
			}
			if err := t.kind.Write(tx, old, &p); err != nil {
				return err
			}
		}
		return nil
	})
}

// quiet says that there is nothing to keep.
func (p *Point) quiet() bool {
	return p.Working+p.Waiting+p.Asking == 0 && p.Queued+p.Done+p.Failed == 0 && len(p.By) == 0
}

// since is what came between two looks. A figure that has shrunk is one of which
// something has left.
func since(last, now *Now) Point {
	p := Point{Figures: now.Figures, Done: max(0, now.Done-last.Done), Failed: max(0, now.Failed-last.Failed)}
	for _, a := range now.Agents {
		if i, was := slices.BinarySearchFunc(last.Agents, a.Name, byName); was {
			l := &last.Agents[i]
			a.Tasks, a.Tokens, a.CostUSD = max(0, a.Tasks-l.Tasks), max(0, a.Tokens-l.Tokens), max(0, a.CostUSD-l.CostUSD)
		}
		if a.Tasks == 0 && a.Tokens == 0 && a.CostUSD == 0 {
			continue
		}
		p.Tokens, p.CostUSD = p.Tokens+a.Tokens, p.CostUSD+a.CostUSD
		p.By = append(p.By, a)
	}
	p.bound()
	return p
}

func byName(s Spent, name string) int { return cmp.Compare(s.Name, name) }

// join takes up what the point has already.
func (p *Point) join(old *Point) {
	o := &old.Figures
	p.Working, p.Waiting, p.Failing, p.Idle = max(p.Working, o.Working), max(p.Waiting, o.Waiting), max(p.Failing, o.Failing), max(p.Idle, o.Idle)
	p.Paused, p.Offline = max(p.Paused, o.Paused), max(p.Offline, o.Offline)
	p.Queued, p.Asking, p.WaitS = max(p.Queued, o.Queued), max(p.Asking, o.Asking), max(p.WaitS, o.WaitS)
	p.Done, p.Failed, p.Tokens, p.CostUSD = p.Done+old.Done, p.Failed+old.Failed, p.Tokens+old.Tokens, p.CostUSD+old.CostUSD
	p.By = Sum(false, p.By, old.By)
	p.bound()
}

func (p *Point) bound() {
	if len(p.By) > maxSpent {
		core.Sort(p.By, costliest)
		p.By = p.By[:maxSpent]
	}
	core.Sort(p.By, func(a, b Spent) int { return cmp.Compare(a.Name, b.Name) })
}

// Sum adds up what was spent, by agent or by project, who cost most first.
func Sum(projects bool, all ...[]Spent) (sum []Spent) {
	at := map[string]int{}
	for _, list := range all {
		for _, s := range list {
			if projects {
				s.Name, s.Project = s.Project, ""
			}
			i, is := at[s.Name]
			if !is {
				at[s.Name] = len(sum)
				sum = append(sum, s)
				continue
			}
			sum[i].add(s)
		}
	}
	core.Sort(sum, costliest)
	return sum
}

func costliest(a, b Spent) int {
	return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Name, b.Name))
}

// over are the points of a span until now, one for each of its steps, the oldest first;
// of steps in which nothing happened all figures are 0.
func (t *Trends) over(ctx context.Context, tenant, span string) (all []Point, err error) {
	i := slices.IndexFunc(Spans(), func(s Span) bool { return s.Name == span })
	if i < 0 {
		return nil, core.Invalid("over", span, "hour, day or week")
	}
	s := Spans()[i]
	first := t.opt.Clock.Now().UTC().Truncate(s.Step).Add(-time.Duration(s.Count-1) * s.Step)
	err = t.opt.Ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for i := range s.Count {
			p := Point{TenantID: tenant, Span: span, From: first.Add(time.Duration(i) * s.Step)}
			kept, err := t.kind.Load(tx, slot(&p))
			if err != nil {
				return err
			}
			if kept != nil && kept.From.Equal(p.From) {
				p = *kept
			}
			all = append(all, p)
		}
		return nil
	})
	return all, err
}
