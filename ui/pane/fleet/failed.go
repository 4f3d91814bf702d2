package fleet

import (
	"swarmdeck/engine/skill"
	"swarmdeck/ui/pane"
)

// Failed are the newest subagents that failed in the last minutes, newest
// first, as far as they were read.
func (p *Pane) Failed(env pane.Env) []*skill.Subagent {
	var out []*skill.Subagent
	for i := range p.failed {
		if a := &p.failed[i]; a.TenantID == env.Tenant && env.Now.Sub(a.CompletedAt) < failedShown {
			out = append(out, a)
		}
	}
	return out
}
