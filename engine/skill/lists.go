package skill

import (
	"context"
	"fmt"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// find reads a subagent of the caller's tenant.
func (s *Skills) find(ctx context.Context, by core.Caller, id string) (Subagent, error) {
	a, err := record.Value(s.agents.Get(ctx, by.Tenant, id))
	return a, s.foreign(ctx, by, id, err)
}

// Subagent returns one subagent with its results.
func (s *Skills) Subagent(ctx context.Context, tenant, id string) (Subagent, error) {
	var found Subagent
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		a, err := s.agents.Need(tx, id)
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
	if f.Status != "" && !slices.Contains(States(), State(f.Status)) {
		return core.Page[Subagent]{}, core.Invalid("state", f.Status, fmt.Sprint("one of ", States()))
	}
	var page core.Page[Subagent]
	err := s.ledger.View(ctx, tenant, func(tx *audit.Tx) (err error) {
		if page, err = record.Paged(s.agents.Page(ctx, tx, record.Query[*Subagent]{Filter: f})); err != nil {
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

func (a *Subagent) fits(f core.Filter) bool {
	return core.Wants(f.Status, string(a.State)) && core.Wants(f.Agent, a.AgentID) && core.Wants(f.Kind, a.AssignedSkill) &&
		core.Wants(f.Task, a.TaskID) && core.Wants(f.Session, a.SessionID) && core.Wants(f.Trace, a.TraceID) &&
		f.Finds(a.AgentID, a.Name, a.Skill, a.AssignedSkill, a.Error, core.Named(a.Shown()))
}

// Execution returns one execution.
func (s *Skills) Execution(ctx context.Context, tenant, id string) (Execution, error) {
	e, err := record.Value(s.execs.Get(ctx, tenant, id))
	e.left = s.left(e.Status == StatusPending)
	return e, s.foreign(ctx, core.Self(tenant, "reader"), id, err)
}

// Executions lists executions, newest first: of one skill when skill is not
// "", of a subagent (Agent), with a Status, of a Task, Session or Trace, whose
// runner is of a Kind, started within Since and Until.
func (s *Skills) Executions(ctx context.Context, tenant, skill string, f core.Filter) (page core.Page[Execution], err error) {
	if f.Agent != "" {
		if _, err := core.LocalUUID("agent_id", tenant, f.Agent); err != nil {
			return page, s.foreign(ctx, core.Self(tenant, "reader"), f.Agent, err)
		}
	}
	q := record.Query[*Execution]{Filter: f}
	if skill != "" {
		if skill, _, err = SplitRef(skill); err != nil {
			return page, err
		}
		if f.Agent == "" {
			q.Along, q.Word = bExecSkill, skill
		} else {
			q.Match = func(e *Execution) (bool, error) { return skill == e.SkillName, nil }
		}
	}
	if page, err = record.Paged(s.execs.Find(ctx, tenant, q)); err != nil {
		return page, fmt.Errorf("list executions: %w", err)
	}
	for i := range page.Items {
		page.Items[i].left = s.left(page.Items[i].Status == StatusPending)
	}
	return page, nil
}

// named are the words that lists have for how far it is.
func (e *Execution) named() string {
	if e.Status == StatusPending {
		return "running interrupted"
	}
	return string(e.Status)
}

func (e *Execution) fits(f core.Filter) bool {
	return core.Wants(f.Status, string(e.Status)) && core.Wants(f.Agent, e.AgentID) && core.Wants(f.Kind, e.Kind) &&
		core.Wants(f.Task, e.TaskID) && core.Wants(f.Session, e.SessionID) && core.Wants(f.Trace, e.TraceID) &&
		f.Finds(e.ExecutionID, e.SkillName, e.Step, e.Error, e.named())
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
		f.Total = s.execs.Counted(tx, string(bExecSkill), skill)
		from, to := record.Text(skill).Under()
		return tx.Scan(bExecSkill, from, to, true, func(_, value []byte) (bool, error) {
			if len(value) != 9 || value[0] == 'i' {
				return true, nil
			}
			took = append(took, int64(record.LastSeq(value)))
			if value[0] != StatusSuccess[0] {
				failed++
			}
			return len(took) < maxFigures, nil
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
