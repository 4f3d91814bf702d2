package env

import (
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
