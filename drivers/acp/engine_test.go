package acp

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// playEngine opens an agent as an engine would, gives it work that leaves a
// process behind, and waits to be killed.
func playEngine(dir string) {
	sup, err := cell.NewSupervisor(cell.Options{Instance: os.Getenv("ACP_TEST_INSTANCE")})
	if err != nil {
		panic(err)
	}
	r, err := NewRuntime(sup, Options{Local: keeper.Local{Dir: dir, State: dir}})
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	h, err := r.Open(context.Background(), fleet.Agent{
		Name: "actor", TenantID: "t_test", Command: []string{self}, Env: map[string]string{"ACP_TEST_AS": "{}"},
	}, func(fleet.Health) {})
	if err != nil {
		panic(err)
	}
	_, _ = h.Prompt(context.Background(), fleet.Prompt{
		TaskID: "tk_00000_0000000001", Message: "spawn " + filepath.Join(dir, "pid") + "\ndeaf\nhang", Beat: func() {},
		Emit: func(context.Context, fleet.Event) (fleet.ToolAnswer, error) { return fleet.ToolAnswer{}, nil },
	})
}

func TestNoProcessOutlivesAKilledEngine(t *testing.T) {
	self := expect.Of(os.Executable())(t)
	dir, instance := t.TempDir(), fmt.Sprintf("acpkill%d", os.Getpid())
	engine := osexec.Command(self)
	engine.Env = append(os.Environ(), "ACP_TEST_ENGINE="+dir, "ACP_TEST_INSTANCE="+instance)
	engine.Stderr = os.Stderr
	expect.No(t, engine.Start())
	expect.Await(t, "the agent has left a process behind", func() bool { return readPID(filepath.Join(dir, "pid")) > 0 })
	n := len(marked(instance))
	expect.True(t, n >= 2, "%d processes of the engine, want the agent and its child", n)
	expect.No(t, engine.Process.Kill())
	_ = engine.Wait()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	next := expect.Of(cell.NewSupervisor(cell.Options{Instance: instance}))(t)
	defer next.Close()
	if n, err := next.Sweep(ctx); err != nil || n == 0 { // what the next engine does first
		t.Fatalf("swept %d: %v", n, err)
	}
	left := marked(instance)
	expect.True(t, len(left) == 0, "left: %v", left)
}

// marked lists the live processes of an engine, by their environment.
func marked(instance string) (pids []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range dirs {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte(cell.Marker+"="+instance+"/")) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

func TestALongMessageIsCutIntoLines(t *testing.T) {
	s, _ := newStand(t, traits{}, settings{})
	long := strings.Repeat("äöü ", 50_000) // 350,000 bytes in one piece
	out := s.prompt(`raw {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"` + long + `"}}`)
	expect.True(t, out.Text == long, "a result of %d bytes", len(out.Text))
	said := s.texts("message")
	expect.Is(t, strings.Join(said, ""), long, "the pieces are not the whole")
	for _, piece := range said {
		expect.True(t, len(piece) <= maxLogLine, "a piece of %d bytes", len(piece))
	}
}

func TestTheGateHearsTheSameArgumentsOfEveryAgent(t *testing.T) {
	c := &call{
		title: "write it", input: core.Raw(`"text"`), locations: core.Raw(`[{"path":"/a"}]`),
		texts: []string{"why"}, diffs: []fileDiff{{Path: "/a", New: "n"}},
	}
	want := `{"diffs":[{"path":"/a","oldText":"","newText":"n"}],"input":"text","locations":[{"path":"/a"}],"text":["why"],"title":"write it"}`
	expect.Is(t, string(c.args()), want, "args")
}
