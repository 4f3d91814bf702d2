package builtin

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// maxWait is the longest time to wait for anything, that of a try (model 3).
const maxWait = 3600

// seconds is a number of seconds as a duration.
func seconds(field string, n float64) (time.Duration, error) {
	if math.IsNaN(n) || n < 0 || n > maxWait {
		return 0, core.Invalid(field, n, "0-3600")
	}
	return time.Duration(n * float64(time.Second)), nil
}

func sleep(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
	var p struct {
		Seconds float64 `json:"seconds"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	d, err := seconds("seconds", p.Seconds)
	if err != nil {
		return nil, err
	}
	if err := hold.Sleep(ctx, d); err != nil {
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
		Timeout float64 `json:"timeout"`
	}
	if err := read(call, &p); err != nil {
		return nil, err
	}
	if (p.Topic == "") == !p.Mailbox {
		return nil, core.Invalid("topic", p.Topic, "a topic, or mailbox: true, but not both")
	}
	limit, err := seconds("timeout", p.Timeout)
	if err != nil {
		return nil, err
	}
	waiting := ctx
	if limit > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	var message core.Raw
	if paused := hold.Idle(ctx, func() { message, err = r.opt.Messages.Wait(waiting, call.Tenant, call.AgentID, p.Topic) }); err == nil {
		err = paused
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, &skill.Failure{Code: "no_message", Message: fmt.Sprintf("no message came within %s", limit)}
	}
	return message, err
}
