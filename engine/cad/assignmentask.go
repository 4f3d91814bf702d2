package cad

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// kindPrompt is the kind of task by which an agent is asked (the fleet's).
const kindPrompt = "agent.prompt"

// promptInput is the input of such a task.
type promptInput struct {
	Agent   string `json:"agent"`
	Message string `json:"message"`
}

// ask gives an agent of the fleet a prompt through the queue and returns its
// answer. When ctx ends before, the prompt is cancelled.
func (c *Controller) ask(ctx context.Context, by core.Caller, agent, message string, as swarm.Dispatch) (core.Raw, error) {
	once := 0
	as.Kind, as.Input, as.MaxAttempts = kindPrompt, core.MustEncode(promptInput{agent, message}), &once
	t, err := c.opt.Swarm.Dispatch(ctx, by, as)
	if err != nil {
		return nil, fmt.Errorf("ask agent %s: %w", agent, err)
	}
	return c.answer(ctx, by, agent, t.TaskID)
}

const cancelWait = 5 * time.Second

// answer waits for a prompt's end.
func (c *Controller) answer(ctx context.Context, by core.Caller, agent, tk string) (core.Raw, error) {
	t, err := c.opt.Tasks.Wait(ctx, by.Tenant, tk, "")
	if ctx.Err() != nil {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer stop()
		_, bad := c.opt.Swarm.Cancel(end, by, tk, "whoever asked has gone")
		if errors.Is(bad, core.Kind(core.Conflict)) { // it is over
			bad = nil
		}
		return nil, errors.Join(context.Cause(ctx), bad)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for agent %s: %w", agent, err)
	}
	res, err := c.opt.Tasks.Result(ctx, by.Tenant, tk)
	if err != nil {
		return nil, fmt.Errorf("read the answer of agent %s: %w", agent, err)
	}
	if t.Status == task.Succeeded {
		return objectOf(res.Output), nil
	}
	why := string(t.Status)
	if res.Error != nil {
		why += ": " + res.Error.Message
	}
	return nil, core.Errorf(core.Unavailable, "agent %s: task %s ended %s", agent, tk, why).With("field", "agent").With("value", agent)
}

// objectOf is an agent's output, or the one JSON object that its text is, in a
// code fence or bare.
func objectOf(output core.Raw) core.Raw {
	var text string
	_ = mapping.EachText(output, func(dec *jsontext.Decoder, name bool, s string) error {
		if at := strings.TrimPrefix(mapping.Place(dec.StackPointer()), "."); !name && (at == "text" || at == "stdout") {
			text = s
		}
		return nil
	})
	text = strings.TrimSpace(text)
	if from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}'); from >= 0 && to > from {
		if inner := core.Raw(text[from : to+1]); core.CheckObject("answer", inner, core.MaxInput) == nil {
			return inner
		}
	}
	return output
}
