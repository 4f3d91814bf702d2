package exec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// play is what the test binary does when a test starts it as a command.
func play(role string) int {
	switch role {
	case "engine":
		return playEngine()
	case "models":
		return playModels()
	}
	stage := &jsonLines{waiting: map[string]chan decisionLine{}}
	tasks := make(chan taskLine)
	go stage.listen(os.Stdin, tasks)
	for t := range tasks {
		why := drivertest.Perform(stage, t.Message)
		r := resultLine{Type: "result", Status: "succeeded", Output: core.Raw(fmt.Sprintf(`{"pid":%d}`, os.Getpid()))}
		if why != "" {
			r.Status, r.Error = "failed", why
		}
		stage.write(r)
		if role == "once" {
			return 0
		}
	}
	return 0
}

// playEngine starts a run as an engine would, tells its processes, and waits to
// be killed.
func playEngine() int {
	s, err := cell.NewSupervisor(cell.Options{Instance: os.Getenv("EXEC_TEST_INSTANCE")})
	if err != nil {
		panic(err)
	}
	dir := os.Getenv("EXEC_TEST_DIR")
	if _, err := s.Start(cell.Spec{Run: "r", Argv: sh("echo $$ >>pids; setsid sh -c 'echo $$ >>pids; sleep 300' & sleep 300"), Dir: dir}); err != nil {
		panic(err)
	}
	select {}
}

// jsonLines is an actor's stage: the agent's side of the protocol.
type jsonLines struct {
	out sync.Mutex

	mu      sync.Mutex
	asked   int
	waiting map[string]chan decisionLine
	cancel  chan struct{}
}

func (s *jsonLines) listen(in io.Reader, tasks chan<- taskLine) {
	defer close(tasks)
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var head struct {
			Type string `json:"type"`
		}
		if core.DecodeStored(line, &head) != nil {
			continue
		}
		switch head.Type {
		case "task":
			var t taskLine
			if core.Decode(line, &t) == nil {
				s.mu.Lock()
				s.cancel = make(chan struct{})
				s.mu.Unlock()
				tasks <- t
			}
		case "decision":
			var d decisionLine
			if core.Decode(line, &d) != nil {
				continue
			}
			s.mu.Lock()
			if c := s.waiting[d.CallID]; c != nil {
				c <- d
				delete(s.waiting, d.CallID)
			}
			s.mu.Unlock()
		case "cancel":
			s.mu.Lock()
			close(s.cancel)
			s.mu.Unlock()
		}
	}
}

func (s *jsonLines) write(v any) {
	line, err := core.Encode(v)
	if err != nil {
		panic(err)
	}
	s.out.Lock()
	defer s.out.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n'))
}

func (s *jsonLines) Say(text string) { s.write(messageLine{Type: "message", Text: text}) }

func (s *jsonLines) Ask(tool, args string) (decision, final, reason string) {
	c := make(chan decisionLine, 1)
	s.mu.Lock()
	s.asked++
	id := fmt.Sprintf("call-%d", s.asked)
	s.waiting[id] = c
	s.mu.Unlock()
	s.write(map[string]any{"type": "tool_request", "call_id": id, "tool": tool, "args": core.Raw(args), "intent": "test"})
	d := <-c
	return d.Decision, string(d.Args), d.Reason
}

func (s *jsonLines) Cancelled() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel
}

// noisy lines break the protocol in every way but a wrong result.
var noisy = []string{
	"", " ", "\x1b[2J\x1b]52;c;aGk=\x07 escape", "\xff\xfe invalid", "bidi \u202e evil", "{", "{}", "[]", "null", `{"type":1}`,
	`{"type":"hologram","text":"?"}`, `{"type":"message"} trailing`, `{"type":"message","text":1}`, `{"type":"message","colour":"red"}`,
	`{"type":"message","type":"message","text":"twice"}`, `{"type":"log","level":"LOUD","message":"x"}`,
	`{"type":"tool_request"}`, `{"type":"tool_request","call_id":"n1","tool":"x","args":[]}`,
	`{"type":"tool_result","call_id":"n2","status":"maybe"}`, `{"type":"usage","tokens":-5}`, `{"type":"usage","cost_usd":1e999}`,
	strings.Repeat(`{"type":"message","text":`, 300), strings.Repeat("[", 100_000),
}

func (s *jsonLines) Noise() {
	s.out.Lock()
	defer s.out.Unlock()
	for _, line := range noisy {
		_, _ = os.Stdout.WriteString(line + "\n")
	}
	_, _ = os.Stdout.Write(append(bytes.Repeat([]byte("x"), 11<<20), '\n'))
	_, _ = os.Stderr.WriteString("\x1b[31mred\n")
}

// actor is the test binary as an agent.
func actor(t *testing.T, role string) drivertest.Subject {
	t.Helper()
	r := expect.Of(NewRuntime(drivertest.Cells(t, cell.Options{}), RuntimeOptions{Dir: t.TempDir()}))(t)
	self := expect.Of(os.Executable())(t)
	return drivertest.Subject{
		Runtime: r, Lasting: role == "stay",
		Actor: fleet.Agent{
			Name: "actor", TenantID: "t_test", Runtime: "exec", Profile: "open", // its files are the test's, not its own
			Command: []string{self}, Env: map[string]string{"EXEC_TEST_ROLE": role},
		},
	}
}

func TestConformanceOfAnAgentThatStays(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject { return actor(t, "stay") })
}

func TestConformanceOfAOneShotAgent(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) drivertest.Subject { return actor(t, "once") })
}
