package builtin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// echo gives its parameters back.
func echo(_ context.Context, call skill.Call, _ *skill.Hold) (core.Raw, error) {
	if len(call.Params) == 0 {
		return core.Raw(`{}`), nil
	}
	return call.Params, nil
}

// seconds is a number of seconds as a duration.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func sleep(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p struct {
		Seconds float64 `json:"seconds" allow:"0-3600"` // as long as a try (model 3)
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	if err := hold.Sleep(ctx, seconds(p.Seconds)); err != nil {
		return nil, err
	}
	return core.Encode(p)
}

// waitForMessage is paused at once: what comes in meanwhile is its result
// when it goes on.
func (r *Runner) waitForMessage(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p struct {
		Topic   string  `json:"topic"`
		Mailbox bool    `json:"mailbox"`
		Timeout float64 `json:"timeout" allow:"0-3600"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	if (p.Topic == "") == !p.Mailbox {
		return nil, core.Invalid("topic", p.Topic, "a topic, or mailbox: true, but not both")
	}
	waiting, limit := ctx, seconds(p.Timeout)
	if limit > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	var message core.Raw
	var err error
	if paused := hold.Idle(ctx, func() { message, err = r.opt.Messages.Wait(waiting, call.Tenant, call.AgentID, p.Topic) }); err == nil {
		err = paused
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &skill.Failure{Code: "no_message", Message: fmt.Sprintf("no message came within %s", limit)}
	}
	return message, err
}
