package trend

import (
	"context"
	"time"
)

// Overview is how a tenant is doing at a glance, and how it went over a span.
type Overview struct {
	TenantID string    `json:"tenant_id"`
	Over     string    `json:"over"`
	At       time.Time `json:"at"`
	Now      Figures   `json:"now"`
	Points   []Point   `json:"points"` // one for each step, the oldest first
	// Agents and Projects are those that there are, or that did something within the
	// span, who cost most first.
	Agents   []Share `json:"agents"`
	Projects []Share `json:"projects"`
	// AwaySince and AwayUntil are when nobody had a cockpit open last, as far as the
	// engine knows; AwayUntil has no value while nobody has.
	AwaySince time.Time `json:"away_since,omitzero"`
	AwayUntil time.Time `json:"away_until,omitzero"`
}

// Share is what an agent or a project did within a span, and how it is now.
type Share struct {
	Spent
	Working int `json:"working"` // agents, now
	Waiting int `json:"waiting"`
	Failing int `json:"failing"`
}

// Overview makes the overview of a span from a look at a tenant now.
func (t *Trends) Overview(ctx context.Context, tenant, span string) (o Overview, err error) {
	if o.Points, err = t.over(ctx, tenant, span); err != nil {
		return o, err
	}
	now, err := t.opt.Look(tenant)
	if err != nil {
		return o, err
	}
	if t.opt.Away != nil {
		o.AwaySince, o.AwayUntil = t.opt.Away(tenant)
	}
	o.TenantID, o.Over, o.At, o.Now = tenant, span, t.opt.Clock.Now().UTC(), now.Figures
	if last := t.newest(tenant); last != nil { // what came since the newest look is in no point yet
		p := since(last, &now)
		old := &o.Points[len(o.Points)-1]
		p.TenantID, p.Span, p.From = old.TenantID, old.Span, old.From
		p.join(old)
		*old = p
	}
	var spent [][]Spent
	for i := range o.Points {
		spent = append(spent, o.Points[i].By)
		o.Points[i].By = nil
	}
	for i := range now.Agents { // those that did nothing are there too
		a := &now.Agents[i]
		spent = append(spent, []Spent{{Name: a.Name, Project: a.Project}})
	}
	o.Agents = shares(Sum(false, spent...), now.Agents, func(a *Spent) string { return a.Name })
	o.Projects = shares(Sum(true, spent...), now.Agents, func(a *Spent) string { return a.Project })
	return o, nil
}

// shares puts what was spent beside how those are now who spent it.
func shares(spent, agents []Spent, of func(*Spent) string) []Share {
	now := map[string]*Figures{}
	for i := range agents {
		name := of(&agents[i])
		if now[name] == nil {
			now[name] = &Figures{}
		}
		now[name].Count(agents[i].State)
	}
	all := make([]Share, len(spent))
	for i, s := range spent {
		all[i].Spent = s
		if f := now[s.Name]; f != nil {
			all[i].Working, all[i].Waiting, all[i].Failing = f.Working, f.Waiting, f.Failing
		}
	}
	return all
}
