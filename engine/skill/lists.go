package skill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// find reads a subagent of the caller's tenant.
func (s *Skills) find(ctx context.Context, by core.Caller, id string) (a *Subagent, err error) {
	err = s.ledger.View(ctx, by.Tenant, func(tx *audit.Tx) error {
		a, err = loadAgent(tx, id)
		return err
	})
	return a, s.foreign(ctx, by, id, err)
}

// Subagent returns one subagent with its results.
func (s *Skills) Subagent(ctx context.Context, tenant, id string) (Subagent, error) {
	var found Subagent
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		a, err := loadAgent(tx, id)
		if err != nil {
			return err
		}
		found = *a
		found.left = s.left(a.State == Running)
		return withResults(tx, &found)
	})
	return found, s.foreign(ctx, core.Self(tenant, "reader"), id, err)
}

// Subagents lists subagents, newest first, with their results. Status is a
// State, Kind the name of the assigned skill, Task, Trace, Session, Agent (the
// id), Since and Until (of its creation) and Match narrow it.
func (s *Skills) Subagents(ctx context.Context, tenant string, f core.Filter) (core.Page[Subagent], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Subagent]{}, err
	}
	if f.Status != "" && !slices.Contains(States(), State(f.Status)) {
		return core.Page[Subagent]{}, core.Invalid("state", f.Status, fmt.Sprint("one of ", States()))
	}
	l := lister[Subagent]{f: f, counter: countAgents, of: subagents(), match: matchAgent(f), since: func(a *Subagent) bool {
		return !f.Since.IsZero() && a.CreatedAt.Before(f.Since)
	}}
	if f.Status != "" {
		l.along(bAgentState, f.Status, countState(State(f.Status)), f == core.Filter{Status: f.Status, Page: f.Page, Size: f.Size})
	}
	var page core.Page[Subagent]
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		if page, err = l.page(tx); err != nil {
			return err
		}
		for i := range page.Items {
			page.Items[i].left = s.left(page.Items[i].State == Running)
			if err := withResults(tx, &page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return page, fmt.Errorf("list subagents: %w", err)
	}
	return page, nil
}

func matchAgent(f core.Filter) func(*Subagent) bool {
	return func(a *Subagent) bool {
		return same(f.Status, string(a.State)) && same(f.Agent, a.AgentID) && same(f.Kind, a.AssignedSkill) && same(f.Task, a.TaskID) &&
			same(f.Session, a.SessionID) && same(f.Trace, a.TraceID) && (f.Until.IsZero() || a.CreatedAt.Before(f.Until)) &&
			matchesText(f.Match, a.AgentID, a.Name, a.Skill, a.AssignedSkill, a.Error)
	}
}

func same(want, got string) bool { return want == "" || want == got }

func matchesText(want string, texts ...string) bool {
	return want == "" || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(want)) })
}

// Execution returns one execution.
func (s *Skills) Execution(ctx context.Context, tenant, id string) (Execution, error) {
	var found Execution
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		e, err := executions().load(tx, id)
		if err == nil {
			found = *e
			found.left = s.left(e.Status == StatusPending)
		}
		return err
	})
	return found, s.foreign(ctx, core.Self(tenant, "reader"), id, err)
}

// Executions lists executions, newest first: of one skill when skill is not
// "", of a subagent (Agent), with a Status, of a Task, Session or Trace, whose
// runner is of a Kind, started within Since and Until.
func (s *Skills) Executions(ctx context.Context, tenant, skill string, f core.Filter) (core.Page[Execution], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[Execution]{}, err
	}
	if f.Status != "" && !slices.Contains(Statuses(), Status(f.Status)) {
		return core.Page[Execution]{}, core.Invalid("status", f.Status, fmt.Sprint("one of ", Statuses()))
	}
	if f.Agent != "" {
		if _, err := core.LocalUUID("agent_id", tenant, f.Agent); err != nil {
			return core.Page[Execution]{}, s.foreign(ctx, core.Self(tenant, "reader"), f.Agent, err)
		}
	}
	if skill, _, err = skillFilter(skill); err != nil {
		return core.Page[Execution]{}, err
	}
	l := lister[Execution]{f: f, counter: countExecs, of: executions(), match: matchExec(skill, f), since: func(e *Execution) bool {
		return !f.Since.IsZero() && e.StartedAt.Before(f.Since)
	}}
	only := func(g core.Filter) bool {
		g.Page, g.Size = f.Page, f.Size
		return f == g
	}
	switch {
	case f.Agent != "":
		l.along(bExecAgent, f.Agent, countExecsOf(bExecAgent, f.Agent), skill == "" && only(core.Filter{Agent: f.Agent}))
	case skill != "":
		l.along(bExecSkill, skill, countExecsOf(bExecSkill, skill), only(core.Filter{}))
	case f.Status != "":
		l.along(bExecStatus, f.Status, countExecsOf(bExecStatus, f.Status), only(core.Filter{Status: f.Status}))
	}
	var page core.Page[Execution]
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		page, err = l.page(tx)
		return err
	})
	if err != nil {
		return page, fmt.Errorf("list executions: %w", err)
	}
	for i := range page.Items {
		page.Items[i].left = s.left(page.Items[i].Status == StatusPending)
	}
	return page, nil
}

// skillFilter is the name that a list is narrowed to.
func skillFilter(ref string) (name, ver string, err error) {
	if ref == "" {
		return "", "", nil
	}
	return SplitRef(ref)
}

func matchExec(skill string, f core.Filter) func(*Execution) bool {
	return func(e *Execution) bool {
		return same(skill, e.SkillName) && same(f.Status, string(e.Status)) && same(f.Agent, e.AgentID) && same(f.Kind, e.Kind) &&
			same(f.Task, e.TaskID) && same(f.Session, e.SessionID) && same(f.Trace, e.TraceID) && (f.Until.IsZero() || e.StartedAt.Before(f.Until)) &&
			matchesText(f.Match, e.ExecutionID, e.SkillName, e.Step, e.Error)
	}
}

// lister reads one page of records that are numbered without gaps, of which the
// oldest may have left, newest first, along the narrowest index.
type lister[T any] struct {
	f       core.Filter
	of      records[T]
	counter string
	match   func(*T) bool
	since   func(*T) bool // it, and all that are older, are too old

	index store.Bucket
	word  string
	count string
	pure  bool // the index holds just what is wanted
}

func (l *lister[T]) along(index store.Bucket, word, count string, pure bool) {
	l.index, l.word, l.count, l.pure = index, word, count, pure
}

func (l *lister[T]) page(tx store.Tx) (core.Page[T], error) {
	var items []T
	var bad error
	n, total := 0, -1
	take := func(number uint64) bool {
		if total >= 0 && n < l.f.Offset() {
			n++
			return true
		}
		r, err := l.of.at(tx, number)
		if bad = err; bad != nil || r == nil {
			return bad == nil
		}
		if l.since(r) {
			return false
		}
		if !l.match(r) {
			return true
		}
		if n >= l.f.Offset() && len(items) < l.f.Size {
			items = append(items, *r)
		}
		n++
		return total < 0 || len(items) < l.f.Size
	}
	var err error
	switch {
	case l.index != "":
		if l.pure {
			total = int(tx.Counter(l.count))
		}
		from, to := wordSpan(l.word)
		err = tx.Scan(l.index, from, to, true, func(key, _ []byte) bool { return take(numberAt(key)) })
	case !l.f.Narrows():
		newest, floor := int(tx.Counter(l.counter)), int(tx.Counter(l.counter+".floor"))
		total = newest - floor
		n = l.f.Offset()
		for number := newest - n; number > floor && take(uint64(number)); number-- {
		}
	default:
		err = tx.Scan(l.of.bucket, nil, nil, true, func(key, _ []byte) bool { return take(numberAt(key)) })
	}
	if total < 0 {
		total = n
	}
	return core.NewPage(items, l.f, total), errors.Join(err, bad)
}

// Figures are how a skill's newest executions went. Interrupted ones count for
// nothing.
type Figures struct {
	Skill       string  `json:"skill"`
	Total       int64   `json:"total"`   // all its executions
	Counted     int     `json:"counted"` // those that the figures are about, at most 200
	P50MS       int64   `json:"p50_ms"`
	P95MS       int64   `json:"p95_ms"`
	FailureRate float64 `json:"failure_rate"` // 0-1, failed and timed out
}

// maxFigures is how many executions figures look at.
const maxFigures = 200

// Figures reads how the last 200 finished executions of a skill (by name, all
// versions) went. Its cost does not grow with the history.
func (s *Skills) Figures(ctx context.Context, tenant, skill string) (Figures, error) {
	f := Figures{Skill: skill}
	var took []int64
	failed := 0
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		f.Total = tx.Counter(countExecsOf(bExecSkill, skill))
		from, to := wordSpan(skill)
		return tx.Scan(bExecSkill, from, to, true, func(_, value []byte) bool {
			if len(value) != 9 || value[0] == 'i' {
				return true
			}
			took = append(took, int64(binary.BigEndian.Uint64(value[1:])))
			if value[0] != StatusSuccess[0] {
				failed++
			}
			return len(took) < maxFigures
		})
	})
	if err != nil {
		return f, fmt.Errorf("read the figures of skill %s: %w", skill, err)
	}
	if f.Counted = len(took); f.Counted > 0 {
		slices.Sort(took)
		f.P50MS, f.P95MS = took[(len(took)-1)*50/100], took[(len(took)-1)*95/100]
		f.FailureRate = float64(failed) / float64(len(took))
	}
	return f, nil
}
