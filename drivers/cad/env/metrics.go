package env

import (
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// maxAgents bounds the agents counted.
const maxAgents = 1000

// tally counts what one agent asked for since the environment started.
type tally struct {
	AgentID    string         `json:"agent_id"`
	Operations int            `json:"operation_count"`
	Successes  int            `json:"success_count"`
	Errors     int            `json:"error_count"`
	Rate       float64        `json:"success_rate"` // 0 to 1; 0 before the first
	Millis     float64        `json:"total_time_ms"`
	Methods    map[string]int `json:"methods"`
	Refusals   map[string]int `json:"errors"` // by error_type
	LastError  string         `json:"last_error,omitzero"`
}

// count notes how a call ended. The agents' own metrics are not counted.
func (e *Env) count(c *call, took time.Duration, err error) {
	if c.method == "agent.metrics" || strings.HasPrefix(c.method, "workspace.load") || strings.HasPrefix(c.method, "workspace.unload") {
		return
	}
	id := c.AgentID
	t := e.agents[id]
	if t == nil {
		if len(e.agents) >= maxAgents || len(id) > 100 || !core.Printable(id) {
			return
		}
		t = &tally{AgentID: id, Methods: map[string]int{}, Refusals: map[string]int{}}
		e.agents[id] = t
	}
	t.Operations++
	t.Methods[c.method]++
	t.Millis += float64(took) / float64(time.Millisecond)
	if err == nil {
		t.Successes++
	} else {
		t.Errors++
		known := refusal(err)
		t.Refusals[known.Data.Name]++
		t.LastError = known.Error()
	}
	t.Rate = float64(t.Successes) / float64(t.Operations)
}

// agentMetrics tells of the agent named, or of all.
func (c *call) agentMetrics(none) (any, error) {
	if c.AgentID == "" {
		list := []tally{}
		for _, id := range slices.Sorted(maps.Keys(c.env.agents)) {
			list = append(list, c.env.agents[id].copy())
		}
		return map[string]any{"agents": list, "kernels_lost": c.env.bench.lost, "bodies": len(c.env.bench.bodies.held)}, nil
	}
	t := c.env.agents[c.AgentID]
	if t == nil {
		return nil, Refuse(EntityNotFound, "agent_id", c.AgentID, "this agent has asked for nothing yet", "leave agent_id out to see all")
	}
	return t.copy(), nil
}

// copy can be told while the counting goes on.
func (t *tally) copy() tally {
	out := *t
	out.Methods, out.Refusals = maps.Clone(t.Methods), maps.Clone(t.Refusals)
	return out
}
