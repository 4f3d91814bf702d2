package keeper

import (
	"context"
	"slices"
	"sync"
	"time"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
)

// An agent tells of a call's end on one way and gives the result to its model
// on another, often before the first has arrived. The record would have a model
// know what has not happened yet.
const (
	// resultPatience is how long a request to a model waits for the end of the
	// calls whose results it holds.
	resultPatience = 500 * time.Millisecond
	maxOpenCalls   = 1000
)

// calls are the tool calls of a turn that are not over.
type calls struct {
	mu      sync.Mutex
	open    map[string]bool
	over    chan struct{} // closed when none is open; nil while nobody waits
	unheard bool          // the agent does not tell of the end of its calls
}

// heed has a prompt's events begin and end the calls that they tell of.
func (c *calls) heed(emit func(context.Context, fleet.Event) (fleet.ToolAnswer, error)) func(context.Context, fleet.Event) (fleet.ToolAnswer, error) {
	return func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
		begins := e.Type == "tool_request" || e.Type == "tool_call"
		if begins {
			c.begin(e.CallID)
		}
		ans, err := emit(ctx, e)
		if e.Type == "tool_result" || e.Type == "tool_request" && ans.Decision != "approve" {
			c.end(e.CallID)
		}
		return ans, err
	}
}

func (c *calls) begin(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]bool{}
	}
	if len(c.open) < maxOpenCalls {
		c.open[id] = true
	}
}

func (c *calls) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, id)
	if len(c.open) == 0 && c.over != nil {
		close(c.over)
		c.over = nil
	}
}

// settle waits until no call is open, where a model is about to be told what
// came of some. In vain it does so once in a turn.
func (c *calls) settle(ctx context.Context, asked *fleet.ModelCall) {
	if !answersCalls(asked) {
		return
	}
	c.mu.Lock()
	if len(c.open) == 0 || c.unheard {
		c.mu.Unlock()
		return
	}
	if c.over == nil {
		c.over = make(chan struct{})
	}
	over := c.over
	c.mu.Unlock()
	late := time.NewTimer(resultPatience)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
		c.mu.Lock()
		c.unheard = true
		c.mu.Unlock()
	case <-ctx.Done():
	}
}

// answersCalls reports whether the newest message holds results of calls.
func answersCalls(c *fleet.ModelCall) bool {
	if c == nil || len(c.Messages) == 0 {
		return false
	}
	m := &c.Messages[len(c.Messages)-1]
	return m.Role == dag.RoleTool || slices.ContainsFunc(m.Content, func(p dag.ContentPart) bool { return p.Type == "tool_result" })
}
