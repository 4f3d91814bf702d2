package drivertest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/procfs"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// Subject is what a driver's test puts on trial.
type Subject struct {
	Runtime fleet.Runtime
	// Actor is an agent whose command performs the acts in its prompts. One with
	// a directory is only asked to write files there.
	Actor fleet.Agent
	// Lasting says that the actor's process serves many prompts.
	Lasting bool
	// Outlasts says that its work goes on when the engine closes.
	Outlasts bool
	// Greets says that its process runs from the start, to be greeted.
	Greets bool
	// FixedArgs says that its protocol can't hand edited arguments on: an
	// approval with other arguments must then be a denial.
	FixedArgs bool
	// Input picks what the actor gave out of a request's arguments; nil takes
	// them as they are.
	Input func(args core.Raw) core.Raw
}

// Lack is what a runtime can't have.
type Lack int

const (
	nothing Lack = iota
	// Gate: its protocol knows no tool calls, so nothing can be asked.
	Gate
	// Process: it works on another machine. No process of it is known here,
	// and one that works can't be frozen.
	Process
)

// Run tests a runtime. Subject is called for each test; what it makes is to end
// with the test. Tests of what the runtime lacks are left out.
func Run(t *testing.T, subject func(t *testing.T) Subject, lacks ...Lack) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *trial)
		of   Lack
	}{
		{"an open agent is idle", idle, nothing},
		{"a prompt ends with its result", result, nothing},
		{"a failed result says why", failure, nothing},
		{"a busy agent refuses a second prompt", busy, nothing},
		{"5,000 fast messages come in order", flood, nothing},
		{"an approved tool call runs", approve, Gate},
		{"an edited tool call runs with the judge's arguments or not at all", edited, Gate},
		{"a denied tool call goes on without it", deny, Gate},
		{"an aborted tool call ends the prompt", abort, Gate},
		{"many tool calls wait at once", many, Gate},
		{"a question may wait for 10 s", patient, Gate},
		{"a question without an answer is denied", unanswered, Gate},
		{"a cancel drops an open question", cancelAsk, Gate},
		{"a cancel leaves no process within 5 s", cancelTree, Process},
		{"an ended context cancels the prompt", cancelContext, nothing},
		{"an interrupt without a prompt does nothing", interruptIdle, nothing},
		{"pause stops the work and resume continues it", pause, Process},
		{"a paused prompt can be cancelled", pauseCancel, Process},
		{"a paused agent starts nothing", pauseStart, nothing},
		{"a crash fails the prompt, shows and heals", crash, nothing},
		{"a crash while idle shows and heals", crashIdle, Process},
		{"noise harms nobody", noise, nothing},
		{"a working agent beats", beats, nothing},
		{"a stopped agent refuses until it is restarted", stop, nothing},
		{"a restart ends the running prompt", restart, nothing},
		{"close ends everything", closing, Process},
		{"close works in every state", closeAnywhere, Gate},
		{"a closed agent can be opened again", reopen, nothing},
	} {
		if slices.Contains(lacks, c.of) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of them wait most of the time
			s := subject(t)
			c.test(t, open(t, s))
		})
	}
}

// patience is far above what anything here takes; it only ends a hang.
const patience = 2 * time.Minute

// trial is one open agent and what it reported.
type trial struct {
	Subject
	h   fleet.Handle
	end context.CancelFunc

	mu     sync.Mutex
	health []fleet.Health
	events []fleet.Event
	bad    []string
	beats  int
	answer func(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error)
}

func open(t *testing.T, s Subject) *trial {
	t.Helper()
	tr := &trial{Subject: s}
	ctx, end := context.WithCancel(context.Background())
	tr.end = end
	h, err := s.Runtime.Open(ctx, s.Actor, tr.notify)
	expect.No(t, err, "open")
	tr.h = h
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		end()
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, b := range tr.bad {
			t.Error(b)
		}
	})
	tr.idle(t)
	return tr
}

// idle waits until the agent has started: an engine gives a task to none before.
func (tr *trial) idle(t *testing.T) {
	t.Helper()
	eventually(t, "the agent is idle", func() bool { return tr.now().Status == fleet.Idle })
}

// again is the same agent, opened once more as another engine would; the
// caller closes it.
func (tr *trial) again(t *testing.T) *trial {
	t.Helper()
	next := &trial{Subject: tr.Subject, end: func() {}}
	h, err := tr.Runtime.Open(context.Background(), tr.Actor, next.notify)
	expect.No(t, err, "open again")
	next.h = h
	next.idle(t)
	return next
}

func (tr *trial) notify(h fleet.Health) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.health = append(tr.health, h)
	if (h.Status == fleet.Offline || h.Status == fleet.Failed) && h.Reason == "" {
		tr.bad = append(tr.bad, "an agent went "+string(h.Status)+" without a reason")
	}
}

func (tr *trial) now() fleet.Health {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.health) == 0 {
		return fleet.Health{}
	}
	return tr.health[len(tr.health)-1]
}

// was reports whether some report from the nth on had the status.
func (tr *trial) was(from int, status fleet.AgentStatus) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.ContainsFunc(tr.health[from:], func(h fleet.Health) bool { return h.Status == status })
}

func (tr *trial) reports() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.health)
}

func (tr *trial) emit(ctx context.Context, e fleet.Event) (fleet.ToolAnswer, error) {
	tr.mu.Lock()
	tr.events = append(tr.events, e)
	answer := tr.answer
	for _, s := range []string{e.Text, e.Tool, e.Intent, e.Error} {
		if strings.ToValidUTF8(s, "") != s {
			tr.bad = append(tr.bad, "an event is not valid UTF-8: "+strconv.Quote(s))
		}
	}
	tr.mu.Unlock()
	if e.Type != "tool_request" {
		return fleet.ToolAnswer{}, nil
	}
	if answer == nil {
		<-ctx.Done()
		return fleet.ToolAnswer{}, ctx.Err()
	}
	return answer(ctx, e)
}

// said lists the texts of the messages so far.
func (tr *trial) said() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var list []string
	for _, e := range tr.events {
		if e.Type == "message" {
			list = append(list, e.Text)
		}
	}
	return list
}

func (tr *trial) asked() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := 0
	for _, e := range tr.events {
		if e.Type == "tool_request" {
			n++
		}
	}
	return n
}

// ending is how a prompt came back.
type ending struct {
	out task.Outcome
	err error
}

// start prompts in the background.
func (tr *trial) start(ctx context.Context, acts ...string) <-chan ending {
	done := make(chan ending, 1)
	go func() {
		out, err := tr.h.Prompt(ctx, fleet.Prompt{
			TaskID: "tk_00000_0000000001", Message: strings.Join(acts, "\n"), Emit: tr.emit,
			Beat: func() {
				tr.mu.Lock()
				defer tr.mu.Unlock()
				tr.beats++
			},
		})
		done <- ending{out, err}
	}()
	return done
}

func wait(t *testing.T, done <-chan ending) ending {
	t.Helper()
	select {
	case e := <-done:
		if e.err != nil {
			t.Fatalf("prompt: %v", e.err)
		}
		if (e.out.Status == task.Succeeded) != (e.out.Error == nil) {
			t.Errorf("status %s with error %+v", e.out.Status, e.out.Error)
		}
		return e
	case <-time.After(patience):
		t.Fatal("the prompt does not end")
		return ending{}
	}
}

// prompt plays acts to their end.
func (tr *trial) prompt(t *testing.T, acts ...string) task.Outcome {
	t.Helper()
	return wait(t, tr.start(context.Background(), acts...)).out
}

func (tr *trial) succeed(t *testing.T, acts ...string) {
	t.Helper()
	if out := tr.prompt(t, acts...); out.Status != task.Succeeded {
		t.Fatalf("outcome %s %+v, want succeeded", out.Status, out.Error)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// file names a file that the actor may write, a new one in each test.
func (tr *trial) file(t *testing.T, name string) string {
	t.Helper()
	in := tr.Actor.Dir
	if in == "" {
		in = t.TempDir()
	}
	dir := expect.Of(os.MkdirTemp(in, ""))(t)
	return filepath.Join(dir, name)
}

func read(path string) string {
	data, _ := os.ReadFile(path)
	return strings.TrimSpace(string(data))
}

// alive reports whether a process runs; a zombie does not.
// Naming are the live processes of the machine whose command line names a mark.
// What a process says of its own number is of its cell.
func Naming(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if strings.Contains(string(line), mark) && pid != os.Getpid() && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Gone fails the test unless every process whose command line names a mark has
// ended: one that was killed takes a moment to.
func Gone(t *testing.T, mark string) {
	t.Helper()
	eventually(t, "what names "+mark+" has ended", func() bool { return len(Naming(mark)) == 0 })
}

// Space names the PID name space that a process is in, "" when it is gone.
func Space(pid int) string {
	name, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	return name
}

// HostPID is the number here of the process that has another in its own name
// space; 0 when it is gone.
func HostPID(space string, inner int) int {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if Space(pid) != space {
			continue
		}
		status, _ := os.ReadFile(file)
		_, line, _ := strings.Cut(string(status), "\nNSpid:")
		line, _, _ = strings.Cut(line, "\n")
		if numbers := strings.Fields(line); len(numbers) > 0 && numbers[len(numbers)-1] == strconv.Itoa(inner) {
			return pid
		}
	}
	return 0
}

func alive(pid int) bool {
	s, err := procfs.Read(pid)
	return err == nil && !s.Dead()
}
