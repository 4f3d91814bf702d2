package exec

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestACrashLoopBacksOffAndShowsFailed(t *testing.T) {
	dir := t.TempDir()
	// It serves two prompts, and every later process dies at once.
	h, w := openAgent(t, sh(`if [ -e `+dir+`/broken ]; then echo x >>`+dir+`/starts; kill -9 $$; fi
		while read -r l; do echo '{"type":"result","status":"succeeded"}'; done`)...)
	ask(t, h, w.prompt("one"))
	ask(t, h, w.prompt("two"))
	touch(t, dir+"/broken")
	expect.No(t, syscall.Kill(w.last().PID, syscall.SIGKILL))
	began := time.Now()
	expect.Await(t, "it has failed", func() bool { return w.seen(fleet.Failed, "SIGKILL") })
	// 100 + 200 + 400 + 800 ms lie before the fifth failure.
	d := time.Since(began)
	expect.True(t, d >= 1400*time.Millisecond, "failed after %v, want 1.5 s or more", d)
	l := w.last()
	expect.True(t, l.Restarts == 4 && l.PID == 0, "health %+v, want 4 restarts and no process", l)
	expect.No(t, h.Restart(context.Background()))
	l = w.last()
	expect.True(t, l.Status == fleet.Idle, "health after restart %+v", l)
}

func TestWhatAnAgentSaysBetweenPromptsIsLoggedWithTheNext(t *testing.T) {
	h, w := openAgent(t, sh(`while read -r l; do
		echo '{"type":"result","status":"succeeded"}'; sleep 0.2
		echo '{"type":"tool_request","call_id":"c9","tool":"rm","args":{}}'
		read -r answer; echo "$answer" >&2; for i in $(seq 3000); do echo chatter $i; done; done`)...)
	ask(t, h, w.prompt("one"))
	expect.Await(t, "the chatter is there", func() bool {
		a := h.(*agent)
		a.Mu.Lock()
		defer a.Mu.Unlock()
		return slices.ContainsFunc(a.Backlog.Kept(), func(e fleet.Event) bool { return e.Text == "chatter 3000" }) // stderr may come later
	})
	ask(t, h, w.prompt("two"))
	logs := w.texts("log")
	expect.Must(t, len(logs) >= keeper.MaxBacklog && strings.Contains(logs[0], "lines from between the tasks were dropped"),
		"%d logs, the first %q", len(logs), logs[0])
	expect.Has(t, strings.Join(logs, "|"), "chatter 2999|INFO chatter 3000", "the newest chatter is missing")
	for _, e := range w.events {
		expect.True(t, e.Type != "tool_request", "a request outside of a task reached the judge")
	}
}

func TestAFloodIsBoundedAndDoesNotBlockTheResult(t *testing.T) {
	if testing.Short() {
		t.Skip("prints hundreds of thousands of lines")
	}
	h, w := openAgent(t, sh(`read -r l; awk 'BEGIN { for (i = 0; i < 250000; i++) print "flood " i }'
		echo '{"type":"usage","tokens":7,"cost_usd":0.5}'; echo '{"type":"result","status":"succeeded"}'`)...)
	out := ask(t, h, w.prompt("go"))
	expect.True(t, out.Status == task.Succeeded, "outcome %s %+v", out.Status, out.Error)
	logs := w.texts("log")
	if n := len(logs); n != keeper.MaxPromptLines+2+keeper.MaxPromptTail || !strings.Contains(logs[keeper.MaxPromptLines], "log is cut here") ||
		!strings.Contains(logs[keeper.MaxPromptLines+1], "lines are left out here") || !strings.Contains(logs[n-1], "flood 249999") {
		t.Errorf("%d lines, the last %q", n, logs[n-1])
	}
	expect.Is(t, len(w.texts("usage")), 1, "usage events, want 1 past the log's end")
}

func TestASlowLogSlowsTheAgentButNotItsCancel(t *testing.T) {
	h, w := openAgent(t, "yes")
	p := w.prompt("go")
	entered := make(chan struct{}, 1)
	p.Emit = func(ctx context.Context, _ fleet.Event) (fleet.ToolAnswer, error) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-ctx.Done() // a log that has stopped
		return fleet.ToolAnswer{}, ctx.Err()
	}
	done := make(chan task.Outcome, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		out, _ := h.Prompt(ctx, p)
		done <- out
	}()
	<-entered
	h.Interrupt()
	select {
	case out := <-done:
		expect.Is(t, out.Status, task.Cancelled, "outcome", out.Error)
	case <-time.After(2 * time.Minute):
		t.Fatal("the cancel hangs behind the log")
	}
}

func TestTooManyOpenQuestionsAreDenied(t *testing.T) {
	h, w := openAgent(t, sh(fmt.Sprintf(`read -r l
		for i in $(seq %d); do echo "{\"type\":\"tool_request\",\"call_id\":\"c$i\",\"tool\":\"x\"}"; done
		echo '{"type":"tool_request","call_id":"c1","tool":"again"}'
		read -r a; echo "$a"; read -r a; echo "$a"
		echo '{"type":"result","status":"succeeded"}'`, keeper.MaxPending+1))...)
	w.answer = func(ctx context.Context, _ fleet.Event) (fleet.ToolAnswer, error) {
		<-ctx.Done()
		return fleet.ToolAnswer{}, ctx.Err()
	}
	out := ask(t, h, w.prompt("go"))
	expect.True(t, out.Status == task.Succeeded, "outcome %s %+v", out.Status, out.Error)
	logs := strings.Join(w.texts("log"), "|")
	for _, want := range []string{
		`"call_id":"c257","decision":"deny","reason":"256 requests`,
		`"call_id":"c1","decision":"deny","reason":"a request with this call_id`,
	} {
		canonical := strings.ReplaceAll(logs, `"args":{},`, "")
		expect.Has(t, strings.ReplaceAll(canonical, `"type":"decision",`, ""), want, "logs", logs, "lack")
	}
}

func TestAnEndedContextClosesTheAgent(t *testing.T) {
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{}))(t)
	ctx, end := context.WithCancel(context.Background())
	w := &watch{}
	h := expect.Of(r.Open(ctx, fleet.Agent{Name: "a", TenantID: "t_test", Command: sh(steady)}, w.notify))(t)
	ask(t, h, w.prompt("one"))
	last := w.last()
	end()
	expect.Await(t, "its process is gone", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", last.PID)); return err != nil })
	expect.No(t, h.Close())
	expect.Is(t, w.last(), last, "health")
	_, err := h.Prompt(context.Background(), w.prompt("two"))
	expect.True(t, err != nil && core.AsError(err).Code == core.Unavailable, "prompt after the end: %v", err)
}

// TestTheByteThatInterruptsAnAgentIsItsOwn (requirement 4.1): it gets that alone,
// and lives on.
func TestTheByteThatInterruptsAnAgentIsItsOwn(t *testing.T) {
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir()}))(t)
	w := &watch{}
	h, err := r.Open(context.Background(), fleet.Agent{
		Name: "a", TenantID: "t_test", Options: core.Raw(`{"interrupt":"\u0003"}`),
		Command: sh(`while read -r line; do
	case $line in
	"$(printf '\003')") printf '{"type":"result","status":"failed","error":"interrupted"}\n' ;;
	*again*) printf '{"type":"result","status":"succeeded","output":{}}\n' ;;
	*) printf '{"type":"message","text":"got %s"}\n' "$(printf %s "$line" | tr -d '"{}')" ;;
	esac
done`),
	}, w.notify)
	expect.No(t, err)
	t.Cleanup(func() { _ = h.Close() })
	over := expect.Later(func() task.Outcome { return ask(t, h, w.prompt("wait")) })
	expect.Await(t, "it works", func() bool { return len(w.texts("message")) == 1 })
	pid := w.last().PID
	h.Interrupt()
	out := <-over
	expect.True(t, out.Status == task.Cancelled, "%+v", out)
	said := w.texts("message")
	expect.True(t, len(said) == 1, "it was told more than the byte: %q", said)
	out = ask(t, h, w.prompt("again"))
	expect.True(t, out.Status == task.Succeeded && w.last().PID == pid, "%+v by process %d, was %d", out, w.last().PID, pid)
	for _, bad := range []string{`{"interrupt":"a\nb"}`, `{"interrupt":7}`, `{"more":1}`, `{"interrupt":"` + strings.Repeat("x", 65) + `"}`} {
		expect.Fails(t, r.Check(fleet.Create{Command: sh("true"), Options: core.Raw(bad)}), bad)
	}
}
