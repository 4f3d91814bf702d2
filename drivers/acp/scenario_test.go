package acp

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// scenario is one task that an agent is given, and what is done about it.
type scenario struct {
	name    string // of its wire
	message string // without the agent's directory: agents repeat it in pieces
	limited bool
	act     func(d *desk, id string) // nil does nothing

	status      task.Status
	exit        string
	interrupted string // reason, "" for none
	cut         string // status of a call that was cut off
	check       func(d *desk, s story) (bad string)
}

func scenarios() []scenario {
	return []scenario{
		{
			name: "approved", message: "RUN: echo hello > yes", status: task.Succeeded, exit: "success",
			act: func(d *desk, id string) { d.answer(id, judge.Answer{Approve: true, Reason: "fine"}) },
			check: func(d *desk, s story) string {
				return unless(s.calls[0].status == "ok" && s.answers > 0 && s.spent > 0 && d.did("yes", true))
			},
		},
		{
			name: "denied", message: "RUN: echo hello > no", status: task.Succeeded, exit: "success", interrupted: "approval_denied",
			act: func(d *desk, id string) { d.answer(id, judge.Answer{Reason: "use the copy"}) },
			check: func(d *desk, s story) string {
				return unless(s.calls[0].status == "canceled" && s.denials == 1 && len(s.prompts) == 2 &&
					strings.Contains(s.prompts[1], ": use the copy\n") && d.did("no", false))
			},
		},
		{
			name: "cancelled", message: "RUN: echo hello > never", status: task.Cancelled, exit: "error", interrupted: "canceled", cut: "canceled",
			act: func(d *desk, id string) {
				d.asked(id)
				expect.Of(d.eng.Fleet.CancelTask(d.t.Context(), d.by, d.name))(d.t)
			},
			check: func(d *desk, s story) string { return unless(len(s.calls) == 1 && d.did("never", false)) },
		},
		{
			name: "killed-waiting", message: "RUN: echo hello > dead", status: task.Failed, exit: "error", interrupted: "crash", cut: "interrupted",
			act: func(d *desk, id string) {
				asked := d.asked(id)
				d.kill()
				expect.Await(d.t, "its approval is void", func() bool {
					a := expect.Of(d.eng.Judge.Approval(context.Background(), d.by.Tenant, asked.ApprovalID))(d.t)
					return a.Status == judge.Voided
				})
			},
			check: func(d *desk, s story) string {
				return unless(len(s.calls) == 1 && s.code == "agent_killed" && d.did("dead", false))
			},
		},
		{
			name: "killed-running", message: "RUN: echo $$ > pid; sleep 300; echo x >> pid", status: task.Failed, exit: "error", interrupted: "crash", cut: "interrupted",
			act: func(d *desk, id string) {
				d.answer(id, judge.Answer{Approve: true, Reason: "fine"})
				expect.Await(d.t, "the command runs", d.commandRuns)
				d.kill()
			},
			check: func(d *desk, s story) string {
				return unless(len(s.calls) == 1 && s.code == "agent_killed" && (d.model == nil || !runs(d.file("pid"))))
			},
		},
		{
			name: "late", message: "RUN: echo hello > late", limited: true, status: task.TimedOut, exit: "error", interrupted: "timeout", cut: "timeout",
			check: func(d *desk, _ story) string { return unless(d.did("late", false)) },
		},
		{
			name: "taken-up", message: "SAY: still here", status: task.Succeeded, exit: "success",
			check: func(_ *desk, s story) string { return unless(len(s.calls) == 0 && s.answers > 0) },
		},
	}
}

func unless(ok bool) string {
	if ok {
		return ""
	}
	return "it is not as it should be"
}

// did reports whether a command did what it should have: that of a played agent does
// nothing.
func (d *desk) did(file string, should bool) bool {
	return d.exists(file) == (should && d.model != nil)
}

// commandRuns reports whether the command of the task under way runs, of a played agent
// whether the engine takes it to.
func (d *desk) commandRuns() bool {
	if d.model != nil {
		return readPID(d.file("pid")) > 0
	}
	now, ok := d.eng.Fleet.Now(d.by.Tenant, d.name)
	return ok && slices.ContainsFunc(now.Calls, func(c fleet.Call) bool { return c.Asked })
}

// run plays a scenario, and compares what the record says of it with what a wire shows:
// of a played agent the one that is played, else what goes over meanwhile. It returns
// where that begins, in bytes.
func (d *desk) run(t *testing.T, sc scenario, wire []wireLine) (since int) {
	t.Helper()
	since = len(d.tape.read())
	timeout := time.Duration(0)
	if sc.limited {
		timeout = max(d.late, 3*d.slow) // it has asked by then, however busy the machine is
	}
	id := d.begin(sc.message, timeout)
	if sc.act != nil {
		sc.act(d, id)
	}
	s := d.story(id)
	show := shows(readWire(t, d.tape.read()[since:]))
	if wire != nil {
		then := shows(wire)
		expect.True(t, reflect.DeepEqual(show, then), "%s: it was played as %+v, of %+v", sc.name, show, then)
		show = then
	}
	if testing.Verbose() {
		t.Logf("%s: %+v\n%+v", sc.name, s, show)
	}
	bad := show.differences(s, sc.cut, d.model != nil)
	if d.told += show.tokens; d.spent < d.told {
		bad = append(bad, fmt.Sprintf("%d tokens were counted so far, the wire has %d", d.spent, d.told))
	}
	if s.status != sc.status || s.exit != sc.exit || strings.Join(s.interrupted, " ") != sc.interrupted {
		bad = append(bad, fmt.Sprintf("it is %s, %s, %q", s.status, s.exit, s.interrupted))
	}
	if len(bad) == 0 {
		if why := sc.check(d, s); why != "" {
			bad = append(bad, why)
		}
	}
	expect.True(t, len(bad) == 0, "%s:\n%s\n%+v", sc.name, strings.Join(bad, "\n"), s)
	return since
}
