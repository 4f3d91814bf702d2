package skill

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// ended waits for a run in a synctest bubble, where the time-out costs nothing.
func ended(t *testing.T, w swarm.Work) task.Outcome {
	t.Helper()
	expect.From(t, w.Done(), "the work does not end")
	return w.Outcome()
}

func TestAFunctionsReturnDecidesTheOutcome(t *testing.T) {
	huge := core.MustEncode(map[string]string{"text": strings.Repeat("x", MaxResult)})
	for _, c := range []struct {
		name, result string
		err          error
		code         string // "" is success
		retryable    bool
	}{
		{name: "object", result: `{"a":1}`},
		{name: "array", result: `[1]`, code: "bad_result"},
		{name: "nothing", result: ``, code: "bad_result"},
		{name: "broken", result: `{"a":`, code: "bad_result"},
		{name: "two values", result: `{} {}`, code: "bad_result"},
		{name: "duplicate", result: `{"a":1,"a":2}`, code: "bad_result"},
		{name: "deep", result: `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, code: "bad_result"},
		{name: "huge", result: string(huge), code: "bad_result"},
		{name: "plain error", err: errors.New("no luck"), code: "failed"},
		{name: "internal", err: core.Errorf(core.Internal, "broken"), code: "failed"},
		{name: "unavailable", err: core.Errorf(core.Unavailable, "not now"), code: "unavailable", retryable: true},
		{name: "invalid", err: core.Invalid("url", "x", "an address"), code: "invalid_input"},
		{name: "own code", err: &Failure{Code: "weird", Message: "m", Retryable: true}, code: "weird", retryable: true},
		{name: "result and error", result: `{}`, err: errors.New("no"), code: "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := ended(t, RunFunc(t.Context(), Call{}, func(context.Context, Call, *Hold) (core.Raw, error) {
					return core.Raw(c.result), c.err
				}))
				if c.code == "" {
					expect.True(t, o.Status == task.Succeeded && string(o.Output) == c.result && o.Error == nil,
						"outcome %+v, want success with %s", o, c.result)
					return
				}
				if o.Status != task.Failed || o.Error.Code != c.code || o.Error.Retryable != c.retryable || o.Error.Message == "" || o.Output != nil {
					t.Errorf("outcome %+v (%+v), want failed with %s, retryable %v", o, o.Error, c.code, c.retryable)
				}
			})
		})
	}
}

func TestAPanicIsTheFailureOfThatRunAlone(t *testing.T) {
	for name, boom := range map[string]func(){
		"text":    func() { panic("out of\ncheese \x1b[31m" + strings.Repeat("!", 1000)) },
		"runtime": func() { var list []int; _ = list[len(t.Name())] },
		"nil":     func() { panic(nil) },
		"goexit":  runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bad := RunFunc(t.Context(), Call{}, func(context.Context, Call, *Hold) (core.Raw, error) { boom(); return nil, nil })
				good := RunFunc(t.Context(), Call{}, func(ctx context.Context, _ Call, h *Hold) (core.Raw, error) {
					return core.Raw(`{}`), h.Sleep(ctx, time.Second)
				})
				o := ended(t, bad)
				if o.Status != task.Failed || o.Error.Code != "panic" || len(o.Error.Message) > 300 ||
					strings.ContainsAny(o.Error.Message, "\n\x1b") || strings.Contains(o.Error.Message, ".go:") {
					t.Errorf("outcome %+v, want a short failure without a stack", o.Error)
				}
				o = ended(t, good)
				expect.True(t, o.Status == task.Succeeded, "the neighbour ended %+v", o)
			})
		})
	}
}

func TestACancelEndsARunWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := RunFunc(t.Context(), Call{}, func(ctx context.Context, _ Call, h *Hold) (core.Raw, error) {
			return nil, h.Sleep(ctx, time.Hour)
		})
		time.Sleep(time.Second)
		w.Cancel("no longer needed")
		w.Cancel("second")
		o := ended(t, w)
		expect.True(t, o.Status == task.Cancelled && o.Error.Message == "no longer needed" && time.Since(began) == time.Second,
			"outcome %+v %+v after %s", o, o.Error, time.Since(began))
	})
}

func TestAClosingEngineEndsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := RunFunc(ctx, Call{}, func(ctx context.Context, _ Call, _ *Hold) (core.Raw, error) {
			<-ctx.Done()
			return nil, errors.New("interrupted")
		})
		stop()
		o := ended(t, w)
		expect.True(t, o.Status == task.Cancelled && o.Error.Message == "the engine is closing", "outcome %+v %+v", o, o.Error)
	})
}

func TestAHangingFunctionIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := RunFunc(t.Context(), Call{}, func(context.Context, Call, *Hold) (core.Raw, error) {
			<-release
			return core.Raw(`{"late":true}`), nil
		})
		began := time.Now()
		w.Cancel("timed out")
		o := ended(t, w)
		expect.True(t, o.Status == task.Cancelled && strings.HasPrefix(o.Error.Message, "timed out") && time.Since(began) <= leaveGrace,
			"outcome %+v %+v after %s", o, o.Error, time.Since(began))
		close(release)
		synctest.Wait()
		o = w.Outcome()
		expect.True(t, o.Status == task.Cancelled, "a late result changed the outcome: %+v", o)
	})
}

func TestAResultThatBeatsTheCancelCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := RunFunc(t.Context(), Call{}, func(ctx context.Context, _ Call, _ *Hold) (core.Raw, error) {
			<-ctx.Done()
			return core.Raw(`{"written":true}`), nil
		})
		w.Cancel("stop")
		o := ended(t, w)
		expect.True(t, o.Status == task.Succeeded && string(o.Output) == `{"written":true}`, "outcome %+v", o)
	})
}

func TestAPauseStopsTheClockOfASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := RunFunc(t.Context(), Call{}, func(ctx context.Context, _ Call, h *Hold) (core.Raw, error) {
			return core.Raw(`{}`), h.Sleep(ctx, 10*time.Second)
		})
		for range 3 {
			time.Sleep(2 * time.Second)
			expect.No(t, w.Pause(t.Context()))
			expect.No(t, w.Pause(t.Context()), "paused twice")
			time.Sleep(time.Hour)
			expect.No(t, w.Resume(t.Context()))
		}
		o := ended(t, w)
		expect.Must(t, o.Status == task.Succeeded, "outcome %+v", o)
		expect.Is(t, time.Since(began), 3*time.Hour+10*time.Second, "took")
		expect.No(t, w.Pause(t.Context()), "what is over stands still:")
	})
}

func TestAPauseIsInEffectOnlyAtAPausePoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := 0
		w := RunFunc(t.Context(), Call{}, func(ctx context.Context, _ Call, h *Hold) (core.Raw, error) {
			time.Sleep(5 * time.Second) // busy
			steps++
			if err := h.Idle(ctx, func() { time.Sleep(5 * time.Second) }); err != nil {
				return nil, err
			}
			steps++
			return core.Raw(`{}`), nil
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		expect.Err(t, w.Pause(ctx), context.DeadlineExceeded, "pause of a busy function")
		began := time.Now()
		err := w.Pause(t.Context())
		expect.True(t, err == nil && time.Since(began) == 4*time.Second, "pause: %v after %s", err, time.Since(began))
		time.Sleep(time.Hour)
		synctest.Wait()
		expect.Is(t, steps, 1, "steps while paused, want 1")
		w.Cancel("enough")
		o := ended(t, w)
		expect.True(t, o.Status == task.Cancelled, "a paused function was not cancelled: %+v", o)
	})
}
