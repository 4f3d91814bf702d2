package drivertest

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func (tr *trial) cancelled(t *testing.T, done <-chan ending) {
	t.Helper()
	tr.h.Interrupt()
	e := wait(t, done)
	if e.out.Status != task.Cancelled {
		t.Errorf("outcome %s %+v, want cancelled", e.out.Status, e.out.Error)
	}
}

func cancelAsk(t *testing.T, tr *trial) {
	done := tr.start(context.Background(), `tool write {"path":"a"}`, "hang")
	eventually(t, "it asks", func() bool { return tr.asked() == 1 })
	tr.cancelled(t, done)
	tr.succeed(t, "say next")
}

func cancelTree(t *testing.T, tr *trial) {
	for _, temper := range []string{"say willing", "deaf"} {
		file := tr.file(t, "pid")
		done := tr.start(context.Background(), "spawn "+file, temper, "hang")
		eventually(t, "it has spawned", func() bool { return read(file) != "" })
		if len(Naming(file)) == 0 {
			t.Fatal("the spawned process has ended")
		}
		tr.cancelled(t, done)
		Gone(t, file)
		tr.succeed(t, "say next")
	}
}

func cancelContext(t *testing.T, tr *trial) {
	ctx, cancel := context.WithCancel(context.Background())
	done := tr.start(ctx, "say up", "hang")
	eventually(t, "it works", func() bool { return len(tr.said()) == 1 })
	cancel()
	if e := wait(t, done); e.out.Status != task.Cancelled {
		t.Errorf("outcome %s %+v", e.out.Status, e.out.Error)
	}
	if tr.Outlasts {
		return
	}
	tr.succeed(t, "say next")
}

func interruptIdle(t *testing.T, tr *trial) {
	tr.h.Interrupt()
	tr.succeed(t, "say one")
	tr.h.Interrupt()
	tr.succeed(t, "say two")
}

func pause(t *testing.T, tr *trial) {
	ctx, file := context.Background(), tr.file(t, "n")
	done := tr.start(ctx, "count "+file)
	eventually(t, "it counts", func() bool { return read(file) != "" })
	expect.No(t, tr.h.Pause(ctx), "pause")
	before := read(file)
	time.Sleep(50 * time.Millisecond) // many counts long
	expect.Is(t, read(file), before, "it counted from")
	expect.No(t, tr.h.Resume(ctx), "resume")
	eventually(t, "it counts on", func() bool { n := read(file); return n != "" && n != before })
	tr.cancelled(t, done)
}

func pauseCancel(t *testing.T, tr *trial) {
	ctx, file := context.Background(), tr.file(t, "n")
	done := tr.start(ctx, "count "+file)
	eventually(t, "it counts", func() bool { return read(file) != "" })
	expect.No(t, tr.h.Pause(ctx), "pause")
	tr.cancelled(t, done)
	expect.No(t, tr.h.Resume(ctx), "resume")
	tr.succeed(t, "say next")
}

func pauseStart(t *testing.T, tr *trial) {
	ctx := context.Background()
	expect.No(t, tr.h.Pause(ctx), "pause")
	done := tr.start(ctx, "say up")
	time.Sleep(100 * time.Millisecond) // enough for a process to start and speak
	if said := tr.said(); len(said) > 0 {
		t.Errorf("it worked while paused: %q", said)
	}
	expect.No(t, tr.h.Resume(ctx), "resume")
	if e := wait(t, done); e.out.Status != task.Succeeded {
		t.Errorf("outcome %s %+v", e.out.Status, e.out.Error)
	}
}

// healed waits until a broken agent has shown it and come back.
func (tr *trial) healed(t *testing.T, from int) {
	t.Helper()
	eventually(t, "it shows offline or failed", func() bool { return tr.was(from, fleet.Offline) || tr.was(from, fleet.Failed) })
	eventually(t, "it recovers", func() bool { return tr.now().Status == fleet.Idle })
	tr.succeed(t, "say next")
}

func crash(t *testing.T, tr *trial) {
	from := tr.reports()
	out := tr.prompt(t, "say up", "crash")
	if out.Status != task.Failed || out.Error == nil || !out.Error.Retryable {
		t.Errorf("outcome %s %+v, want a retryable failure", out.Status, out.Error)
	}
	tr.healed(t, from)
}

func crashIdle(t *testing.T, tr *trial) {
	tr.succeed(t, "say one")
	tr.succeed(t, "say two")
	was := tr.now()
	if !tr.Lasting {
		eventually(t, "no process is left between prompts", func() bool { return tr.now().PID == 0 || !alive(tr.now().PID) })
		return
	}
	if was.PID == 0 {
		t.Fatal("no process is reported")
	}
	from := tr.reports()
	expect.No(t, syscall.Kill(was.PID, syscall.SIGKILL))
	tr.healed(t, from)
	if now := tr.now(); now.PID == was.PID || now.PID == 0 || now.Restarts <= was.Restarts {
		t.Errorf("health %+v after %+v, want a new process and one restart more", now, was)
	}
}

func stop(t *testing.T, tr *trial) {
	ctx := context.Background()
	tr.succeed(t, "say one")
	pid := tr.now().PID
	expect.No(t, tr.h.Stop(ctx), "stop")
	if pid != 0 && alive(pid) {
		t.Errorf("process %d outlived the stop", pid)
	}
	if h := tr.now(); h.Status != fleet.Offline || h.PID != 0 {
		t.Errorf("health %+v, want offline", h)
	}
	_, err := tr.h.Prompt(ctx, fleet.Prompt{TaskID: "tk_00000_0000000002", Emit: tr.emit, Beat: func() {}})
	expect.Fails(t, err, "a stopped agent took a prompt")
	expect.No(t, tr.h.Restart(ctx), "restart")
	eventually(t, "it is idle again", func() bool { return tr.now().Status == fleet.Idle })
	tr.succeed(t, "say two")
}

func restart(t *testing.T, tr *trial) {
	done := tr.start(context.Background(), "say up", "deaf", "hang")
	eventually(t, "it works", func() bool { return len(tr.said()) == 1 })
	expect.No(t, tr.h.Restart(context.Background()), "restart")
	if e := wait(t, done); e.out.Status == task.Succeeded {
		t.Error("the prompt succeeded")
	}
	eventually(t, "it is idle again", func() bool { return tr.now().Status == fleet.Idle })
	tr.succeed(t, "say next")
}

func closing(t *testing.T, tr *trial) {
	file := tr.file(t, "pid")
	done := tr.start(context.Background(), "spawn "+file, "deaf", "hang")
	eventually(t, "it has spawned", func() bool { return read(file) != "" })
	main := tr.now().PID
	expect.No(t, tr.h.Close(), "close")
	if e := wait(t, done); e.out.Status == task.Succeeded {
		t.Error("the prompt succeeded")
	}
	if left := Naming(file); len(left) > 0 || main != 0 && alive(main) {
		t.Errorf("%v and %d outlived the close", left, main)
	}
	if _, err := tr.h.Prompt(context.Background(), fleet.Prompt{TaskID: "tk_00000_0000000002", Emit: tr.emit, Beat: func() {}}); err == nil {
		t.Error("a closed agent took a prompt")
	}
	expect.No(t, tr.h.Close(), "second close")
}

// closeAnywhere closes an agent, as a delete does, whatever it is doing.
func closeAnywhere(t *testing.T, tr *trial) {
	ctx := context.Background()
	expect.No(t, tr.h.Close(), "close")
	for name, bring := range map[string]func(*trial) <-chan ending{
		"idle": func(next *trial) <-chan ending {
			next.succeed(t, "say one")
			return nil
		},
		"asking": func(next *trial) <-chan ending {
			done := next.start(ctx, `tool write {"path":"a"}`)
			eventually(t, "it asks", func() bool { return next.asked() == 1 })
			return done
		},
		"paused": func(next *trial) <-chan ending {
			done := next.start(ctx, "say up", "hang")
			eventually(t, "it works", func() bool { return len(next.said()) == 1 })
			if err := next.h.Pause(ctx); err != nil {
				t.Errorf("pause: %v", err)
			}
			return done
		},
		"paused before it began": func(next *trial) <-chan ending {
			if err := next.h.Pause(ctx); err != nil {
				t.Errorf("pause: %v", err)
			}
			return next.start(ctx, "say up")
		},
		"stopped": func(next *trial) <-chan ending {
			next.succeed(t, "say one")
			if err := next.h.Stop(ctx); err != nil {
				t.Errorf("stop: %v", err)
			}
			return nil
		},
		"crashed": func(next *trial) <-chan ending {
			next.prompt(t, "crash")
			return nil
		},
		"just asked to work": func(next *trial) <-chan ending { return next.start(ctx, "say up", "hang") },
	} {
		next := tr.again(t)
		done := bring(next)
		pid := next.now().PID
		expect.No(t, next.h.Close(), name, "close")
		if done != nil {
			select {
			case e := <-done:
				if e.err == nil && e.out.Status == task.Succeeded {
					t.Errorf("%s: the prompt succeeded", name)
				}
			case <-time.After(patience):
				t.Fatalf("%s: the prompt does not end", name)
			}
		}
		if now := next.now().PID; pid != 0 && alive(pid) || now != 0 && alive(now) {
			t.Errorf("%s: a process outlived the close", name)
		}
	}
}

func reopen(t *testing.T, tr *trial) {
	tr.succeed(t, "say one")
	expect.No(t, tr.h.Close(), "close")
	next := tr.again(t)
	next.succeed(t, "say two")
	expect.Is(t, strings.Join(next.said(), "|"), "two", "messages")
	expect.No(t, next.h.Close(), "close")
}
