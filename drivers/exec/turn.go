package exec

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"swarmdeck/drivers/cell/pin/named"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/judge/edits"
	"swarmdeck/engine/task"
)

// tailBytes is kept of the plain output, for a result made of an exit.
const tailBytes = 64 << 10

// turn is one prompt on its way through a process.
type turn struct {
	*keeper.Turn
	done chan struct{} // closed when its result is there

	// Set before the task is sent.
	message string // of the task, or what a person said since
	uri     string
	runs    int    // processes so far, of one on a wire
	past    string // what a fork goes on from
	reused  bool   // the process has served another turn
	lasting bool   // the agent's processes are known to stay

	mu      sync.Mutex
	outcome *task.Outcome // of its result line
	heard   bool          // the agent has said something in this turn
	earlier []fleet.Event
	pending map[string]bool
	tail    []byte
	warning string // last line of stderr
}

// settled reports whether the agent has given its result.
func (t *turn) settled() bool { return core.IsOver(t.done) }

// emit passes one event on; false when the turn is over.
func (t *turn) emit(e fleet.Event) bool {
	return t.Speak(func() {
		t.flush()
		t.mu.Lock()
		t.heard = true
		t.mu.Unlock()
		t.Pass(e)
	})
}

// flush passes on what the agent said between the turns, inside Speak.
func (t *turn) flush() {
	t.mu.Lock()
	earlier := t.earlier
	t.earlier = nil
	t.mu.Unlock()
	for _, e := range earlier {
		t.Pass(e)
	}
}

// prefix tells the calls of its next process on a wire from those of the others.
func (t *turn) prefix() string {
	if t == nil {
		return ""
	}
	if t.runs++; t.runs == 1 {
		return ""
	}
	return fmt.Sprintf("%d/", t.runs)
}

// note keeps the end of the plain output and the last complaint, for an
// outcome made of an exit.
func (t *turn) note(line string, warning bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if warning {
		if line != "" {
			t.warning = core.ClipTo(line, 256)
		}
		return
	}
	t.tail = append(append(t.tail, line...), '\n')
	if len(t.tail) > 2*tailBytes {
		t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailBytes:]...)
	}
}

// finish takes the result line; the first one counts.
func (t *turn) finish(s *session, e fleet.Event) {
	out := task.Outcome{Status: task.Succeeded, Output: e.Output, Confidence: e.Confidence, Text: string(e.Output)}
	if e.Status != "succeeded" {
		out.Status = task.Failed
		out.Error = keeper.Failure("agent_failed", cmp.Or(e.Error, "the agent gave no reason"), false).Error
	}
	t.conclude(s, out, e)
}

func (t *turn) conclude(s *session, out task.Outcome, e fleet.Event) {
	t.mu.Lock()
	second := t.outcome != nil
	if !second {
		t.outcome = &out
	}
	t.mu.Unlock()
	if second {
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "a second result of the same task was ignored"})
		return
	}
	if e.Type != "" {
		t.emit(e)
	}
	s.lastResult.Store(time.Now().UnixNano())
	close(t.done)
}

// ask puts a tool request to the judge and writes the answer when it is there.
func (t *turn) ask(s *session, e fleet.Event) {
	if !t.Speak(func() { t.askNow(s, e) }) {
		s.decide(e.CallID, fleet.ToolAnswer{Decision: "deny", Reason: "the task is over"})
	}
}

// askNow is ask inside Speak.
func (t *turn) askNow(s *session, e fleet.Event) {
	why := ""
	t.mu.Lock()
	t.heard = true
	switch {
	case t.Ending() != keeper.Running || t.outcome != nil:
		why = "the task is over"
	case t.pending[e.CallID]:
		why = "a request with this call_id is waiting already"
	default:
		t.pending[e.CallID] = true
	}
	t.mu.Unlock()
	if why != "" {
		s.decide(e.CallID, fleet.ToolAnswer{Decision: "deny", Reason: why})
		return
	}
	t.flush()
	t.Ask(e, func(ans fleet.ToolAnswer) {
		t.mu.Lock()
		delete(t.pending, e.CallID)
		t.mu.Unlock()
		s.decide(e.CallID, ans)
	})
}

var _ fleet.Steerer = (*agent)(nil)

// Hears implements fleet.Steerer: it does as soon as it was told a task, until it
// has given its result. On a wire it hears between its processes.
func (a *agent) Hears() error {
	if a.wire != nil {
		return fleet.ErrNextPrompt
	}
	_, _, err := a.listening()
	return err
}

// Steer implements fleet.Steerer: the message is a line of the agent's input.
func (a *agent) Steer(text, uri string) error {
	t, s, err := a.listening()
	if err != nil || a.wire != nil {
		return cmp.Or(err, fleet.ErrNextPrompt)
	}
	if err := s.tell("a message", saidLine{Type: "message", Text: text, URI: uri}); err != nil {
		return err
	}
	t.emit(fleet.Event{Type: "prompt", Text: text})
	return nil
}

// listening is the turn under way with its process.
func (a *agent) listening() (*turn, *session, error) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	switch t, s := a.Turn, a.Sess; {
	case t == nil || s == nil || s.turn.Load() != t:
		return nil, nil, core.Errorf(core.Unavailable, "its process has no task yet")
	case t.settled():
		return nil, nil, core.Errorf(core.Unavailable, "it has given its result")
	default:
		return t, s, nil
	}
}

// written finds the files of the agent's directory that a tool request writes whole, as
// they are before: who is asked sees how they would change, or that they are new, and an
// answer holds for that alone.
func (a *agent) written(args core.Raw) []judge.File {
	if a.Host != "" { // they are not this machine's
		return nil
	}
	argv := []string{"tee"}
	for _, path := range edits.Written(args) {
		if filepath.IsAbs(path) {
			rel, err := filepath.Rel(a.Spec.Dir, path)
			if err != nil {
				continue
			}
			path = rel
		}
		if filepath.IsLocal(path) {
			argv = append(argv, filepath.Clean(path))
		}
	}
	if len(argv) == 1 {
		return nil
	}
	files := a.Pins.Look(a.Spec.Whose.Tenant, named.Line{Argv: argv, Dir: a.Spec.Dir})
	dir, err := os.OpenRoot(a.Spec.Dir) // what a link leads out of it is not looked at
	if err != nil {
		return files
	}
	defer dir.Close()
	for _, path := range argv[1:] {
		_, err := dir.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(files, func(f judge.File) bool { return f.Path == path }) {
			files = append(files, judge.File{Path: path})
		}
	}
	return files
}
