package env

import (
	"maps"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// hello is what a client learns first.
type hello struct {
	About

	Server   string            `json:"server"`
	Version  string            `json:"version"`
	Methods  []string          `json:"methods"`
	Aliases  map[string]string `json:"aliases"`
	Internal []string          `json:"internal"` // for the engine that this works for
	Journal  bool              `json:"journal"`
	Unit     string            `json:"unit"`
	Angle    string            `json:"angle_unit"`
	Limits   map[string]any    `json:"limits"`
	Errors   map[string]Code   `json:"errors"`
}

func (c *call) hello(none) (any, error) {
	h := hello{
		About: c.env.bench.about, Server: "swarmdeck cad env", Version: c.env.options.Version,
		Methods: c.env.methodNames(), Aliases: map[string]string{}, Internal: internalMethods,
		Journal: c.env.options.Journal, Unit: "mm", Angle: "rad",
		Limits: map[string]any{
			"length_mm": MaxLength, "smallest_mm": MinLength, "line_bytes": MaxLine, "batch": maxBatch, "workspaces": MaxWorkspaces,
			"deadline_ms": longestDeadline, "usual_deadline_ms": defaultDeadline, "boolean_inputs": MaxInputs, "view_triangles": maxViewed,
		},
		Errors: map[string]Code{},
	}
	if t := c.env.options.Tolerance; t > 0 && !h.Exact {
		h.Tolerance = t
	}
	for name, m := range c.env.methods {
		if m.canonical != "" {
			h.Aliases[name] = m.canonical
		}
	}
	for code, name := range names {
		h.Errors[name] = code
	}
	return h, nil
}

func (c *call) ping(none) (any, error) {
	return map[string]any{"at": time.Now().UTC().Format(time.RFC3339Nano)}, nil
}

type cancelRequest struct {
	ID core.Raw `json:"id" need:""`
}

// cancelOne ends a request of this connection that runs or waits. It tells whether
// there was one; a request that has been carried out can't be cancelled.
func (c *call) cancelOne(p cancelRequest) (any, error) {
	return map[string]any{"cancelled": c.conn.cancelRequest(string(p.ID))}, nil
}

func (c *conn) cancelRequest(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && c.now.id == id {
		c.now.cancel(errCancel)
		return true
	}
	for _, t := range c.queue {
		for _, r := range t.requests {
			if r.id != nil && string(r.id) == id {
				c.gone[id] = struct{}{}
				return true
			}
		}
	}
	return false
}

// shutdown answers, lets what was asked before be carried out, and reads no
// more.
func (c *call) shutdown(none) (any, error) {
	c.conn.end()
	return map[string]any{"stopping": true}, nil
}

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
