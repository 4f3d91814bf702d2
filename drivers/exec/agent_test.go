package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// watch is a fleet that remembers what an agent's runtime reports.
type watch struct {
	mu     sync.Mutex
	health []fleet.Health
	events []fleet.Event
	beats  int
	answer func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error)
}

func (w *watch) notify(h fleet.Health) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.health = append(w.health, h)
}

func (w *watch) last() fleet.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.health) == 0 {
		return fleet.Health{}
	}
	return w.health[len(w.health)-1]
}

func (w *watch) seen(status fleet.AgentStatus, reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.health {
		if h.Status == status && strings.Contains(h.Reason, reason) {
			return true
		}
	}
	return false
}

func (w *watch) prompt(message string) fleet.Prompt {
	return fleet.Prompt{
		TaskID: "tk_00000_0000000001", Message: message,
		Emit: func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
			w.mu.Lock()
			w.events = append(w.events, e)
			answer := w.answer
			w.mu.Unlock()
			if e.Type == "tool_request" && answer != nil {
				return answer(ctx, e)
			}
			return fleet.ToolAnswer{}, nil
		},
		Beat: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.beats++
		},
	}
}

// texts lists the events of a type, as "LEVEL text" for logs.
func (w *watch) texts(kind string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, e := range w.events {
		switch {
		case e.Type == kind && kind == "log":
			list = append(list, e.Level+" "+e.Text)
		case e.Type == kind:
			list = append(list, e.Text)
		}
	}
	return list
}

func openAgent(t *testing.T, argv ...string) (fleet.Handle, *watch) {
	t.Helper()
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir()}))(t)
	w := &watch{}
	h := expect.Of(r.Open(context.Background(), fleet.Agent{Name: "a", TenantID: "t_test", Profile: "open", Command: argv}, w.notify))(t)
	t.Cleanup(func() { expect.Is(t, h.Close(), nil) })
	return h, w
}

func ask(t *testing.T, h fleet.Handle, p fleet.Prompt) task.Outcome {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	return expect.Of(h.Prompt(ctx, p))(t)
}

// steady is an agent of the kind that stays: it answers each task with its
// own pid and a count.
const steady = `n=0
while read -r line; do
	n=$((n+1))
	echo "plain $n"
	echo "oops $n" >&2
	printf '{"type":"message","text":"working %d"}\n' $n
	printf '{"type":"result","status":"succeeded","output":{"pid":%d,"n":%d},"confidence":0.95}\n' $$ $n
done`

func TestAnAgentThatStaysServesManyPromptsInOneProcess(t *testing.T) {
	h, w := openAgent(t, sh(steady)...)
	got := w.last()
	expect.Must(t, got.Status == fleet.Idle && got.PID == 0, "after open: %+v, want idle without a process", got)
	one := ask(t, h, w.prompt("first"))
	pid := w.last().PID
	two := ask(t, h, w.prompt("second"))
	expect.Must(t, one.Status == task.Succeeded && two.Status == task.Succeeded, "outcomes %+v, %+v", one, two)
	var a, b struct {
		PID int `json:"pid"`
		N   int `json:"n"`
	}
	expect.No(t, errors.Join(core.Decode(one.Output, &a), core.Decode(two.Output, &b)))
	expect.True(t, a.PID == b.PID && drivertest.Space(pid) != "" && b.N == 2, "outputs %s, %s; health says process %d", one.Output, two.Output, pid)
	expect.True(t, one.Confidence != nil && *one.Confidence == 0.95, "confidence %v", one.Confidence)
	if got, want := strings.Join(w.texts("message"), "|"), "working 1|working 2"; got != want {
		t.Errorf("messages %q, want %q", got, want)
	}
	// What comes of its standard error after the result is told with the next prompt.
	expect.Await(t, "all that it said is logged", func() bool {
		ask(t, h, w.prompt("again"))
		logs := w.texts("log")
		return !slices.ContainsFunc([]string{"INFO plain 1", "WARN oops 1", "INFO plain 2", "WARN oops 2"}, func(want string) bool { return !slices.Contains(logs, want) })
	})
}
