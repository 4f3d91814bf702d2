package pane

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// SkillWorld is what the cockpit reads of skills, their runs and subagents.
type SkillWorld interface {
	// Skill, Skills and SkillOrder look into memory only and never block.
	Skill(tenant, ref string) (*skill.Skill, error)
	Skills(tenant string, f core.Filter, tags ...string) (core.Page[*skill.Skill], error)
	// SkillOrder lists what a skill runs: its dependencies in order, itself last.
	SkillOrder(tenant, ref string) ([]*skill.Skill, error)
	SkillFigures(ctx context.Context, tenant, name string) (skill.Figures, error)
	Execution(ctx context.Context, tenant, id string) (skill.Execution, error)
	// Executions are those of one skill when its name is not "".
	Executions(ctx context.Context, tenant, name string, f core.Filter) (core.Page[skill.Execution], error)
	Subagent(ctx context.Context, tenant, id string) (skill.Subagent, error)
	Subagents(ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Subagent], error)
}

func (w world) Skill(tenant, ref string) (*skill.Skill, error) {
	return w.Engine.Skills.Skill(tenant, ref)
}

func (w world) Skills(tenant string, f core.Filter, tags ...string) (core.Page[*skill.Skill], error) {
	return w.Engine.Skills.List(tenant, f, tags...)
}

func (w world) SkillOrder(tenant, ref string) ([]*skill.Skill, error) {
	return w.Engine.Skills.Order(tenant, ref)
}

func (w world) SkillFigures(ctx context.Context, tenant, name string) (skill.Figures, error) {
	return w.Engine.Skills.Figures(ctx, tenant, name)
}

func (w world) Execution(ctx context.Context, tenant, id string) (skill.Execution, error) {
	return w.Engine.Skills.Execution(ctx, tenant, id)
}

func (w world) Executions(ctx context.Context, tenant, name string, f core.Filter) (core.Page[skill.Execution], error) {
	return w.Engine.Skills.Executions(ctx, tenant, name, f)
}

func (w world) Subagent(ctx context.Context, tenant, id string) (skill.Subagent, error) {
	return w.Engine.Skills.Subagent(ctx, tenant, id)
}

func (w world) Subagents(ctx context.Context, tenant string, f core.Filter) (core.Page[skill.Subagent], error) {
	return w.Engine.Skills.Subagents(ctx, tenant, f)
}
