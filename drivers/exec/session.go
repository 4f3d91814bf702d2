package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// session is one process of an agent with its three streams.
type session struct {
	*keeper.Run
	a    *agent
	out  [2]*os.File // its standard output and error
	in   *pipe.Outbox
	turn atomic.Pointer[turn] // whom the output belongs to; nil between prompts

	heard *hearing // on its wire; nil for one that speaks our lines

	turns      int           // guarded by the agent's Mu
	lastResult atomic.Int64  // unix nanoseconds
	reading    atomic.Bool   // stderr was read and is being passed on
	unread     bool          // valid after Over: it left some of its stdin unread
	idle       time.Duration // valid after Over: between its last result and its exit
}

// newSession is for a process that has just started. It follows it with run,
// once it is known whom what it says belongs to.
func newSession(a *agent, run *keeper.Run) *session {
	in, out, errs := run.Proc.Streams()
	return &session{Run: run, a: a, out: [2]*os.File{out, errs}, in: pipe.NewOutbox(in)}
}

func (s *session) run() {
	written := core.Side(s.in.Run)
	drained := core.Side(s.readStdout, s.readStderr)

	<-s.Proc.Done()
	s.unread, s.idle = s.in.Unread() || s.Proc.Unread(), s.idleFor()
	s.Finish(drained, drainPatience, afterGrace)
	s.in.Close()
	s.Proc.CloseIO()
	<-written
	<-drained
	s.Exit = s.Proc.Exit()
	t := s.turn.Load()
	if t != nil && t.settled() {
		t = nil
	}
	s.a.over(s, t)
	close(s.Over)
}

func (s *session) send(line []byte) error { return s.in.Put(line) }

// tell sends what is one line of JSON.
func (s *session) tell(what string, line any) error {
	data, err := core.Encode(line)
	if err != nil {
		return fmt.Errorf("encode %s: %w", what, err)
	}
	return s.send(data)
}

// begin tells it a task: in a line, or as all of its input where it speaks a wire.
func (s *session) begin(task taskLine) error {
	if s.heard != nil {
		defer s.in.End()
		return s.in.Send([]byte(strings.Trim(strings.Join([]string{task.Past, task.Message, task.URI}, "\n\n"), "\n")))
	}
	return s.tell("task", task)
}

// idleFor is the time since its last result, 0 before the first.
func (s *session) idleFor() time.Duration {
	at := s.lastResult.Load()
	if at == 0 {
		return 0
	}
	return time.Since(time.Unix(0, at))
}

func (s *session) readStdout() {
	most := maxAgentLine
	if s.heard != nil {
		most = maxWireLine
	}
	lines := s.Mask.Writer(&pipe.Splitter{Max: most, Emit: s.line})
	defer lines.Close()
	_, _ = io.Copy(lines, s.out[0])
}

func (s *session) readStderr() {
	lines := s.Mask.Writer(&pipe.Splitter{Max: maxLogLine, Emit: func(line []byte, cut int) {
		if s.heard != nil && s.heard.line(1, s.Mask.JSON(line)) {
			return
		}
		e := fleet.Event{Type: "log", Level: "WARN", Text: pipe.Marked(line, cut)}
		if t := s.turn.Load(); t != nil {
			t.note(e.Text, true)
		}
		s.Hear(e)
	}})
	defer lines.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := s.out[1].Read(buf)
		s.reading.Store(true)
		_, _ = lines.Write(buf[:n])
		s.reading.Store(false)
		if err != nil {
			return
		}
	}
}

// quiesce waits until what is in stderr's pipe has been passed on, so that
// the complaint before a result is logged with it. It is bounded: the writer
// may never stop.
func (s *session) quiesce() {
	for deadline := time.Now().Add(100 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n, ok := pipe.Pending(s.out[1]); (!ok || n == 0) && !s.reading.Load() {
			return
		}
	}
}

// line handles one line of stdout.
func (s *session) line(line []byte, cut int) {
	if cut > 0 {
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: pipe.Marked(line[:min(len(line), maxLogLine)], cut+max(0, len(line)-maxLogLine))})
		return
	}
	line = s.Mask.JSON(line)
	e, err := fleet.Event{Level: "INFO", Text: pipe.Text(line)}, error(nil)
	if s.heard == nil {
		e, err = parse(line)
	} else if s.heard.line(0, line) {
		return
	}
	if bad := (*malformed)(nil); errors.As(err, &bad) {
		s.refuse(bad, e)
		return
	}
	switch t := s.turn.Load(); {
	case e.Type == "" || e.Type == "log":
		e.Text = core.ClipTo(e.Text, maxLogLine)
		if e.Type == "" && t != nil {
			t.note(e.Text, false)
		}
		e.Type = "log"
		s.Hear(e)
	case e.Type == "tool_request" && t == nil:
		s.decide(e.CallID, fleet.ToolAnswer{Decision: "deny", Reason: "no task is running"})
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: fmt.Sprintf("tool request %q outside of a task was denied", e.Tool)})
	case t == nil:
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "outside of a task: " + core.ClipTo(pipe.Text(line), maxLogLine)})
	case e.Type == "tool_request":
		e.Bind = s.a.written
		named := ""
		if s.a.Home != nil {
			named = s.a.Home.Options.Home
		}
		e.Cell = keeper.Cell(s.Proc, s.a.Spec, named)
		t.ask(s, e)
	case e.Type == "result":
		t.finish(s, e)
	default:
		s.Hear(e)
	}
}

// refuse deals with a malformed line so that the agent does not wait for ever.
func (s *session) refuse(bad *malformed, e fleet.Event) {
	e.Type, e.Level, e.Text = "log", "WARN", core.ClipTo(bad.Error()+": "+e.Text, maxLogLine)
	s.Hear(e)
	switch bad.kind {
	case "tool_request":
		if bad.callID != "" {
			s.decide(bad.callID, fleet.ToolAnswer{Decision: "deny", Reason: core.ClipTo(bad.Error(), 1024)})
		}
	case "result":
		if t := s.turn.Load(); t != nil {
			t.conclude(s, keeper.Failure("agent_protocol", bad.Error(), false), fleet.Event{})
		}
	}
}

// Hear passes an event to the running prompt, or keeps it for the next.
func (s *session) Hear(e fleet.Event) {
	if t := s.turn.Load(); t != nil && t.emit(e) {
		return
	}
	s.a.Mu.Lock()
	defer s.a.Mu.Unlock()
	s.a.Backlog.Add(e)
}

// decide writes a decision line. An agent that does not read it will have to
// live without: the effect was not allowed.
func (s *session) decide(callID string, ans fleet.ToolAnswer) {
	d := decisionLine{Type: "decision", CallID: callID, Decision: ans.Decision, Args: ans.Args, Reason: ans.Reason}
	if len(d.Args) == 0 || d.Decision != "approve" {
		d.Args = core.Raw(`{}`)
	}
	line, err := core.Encode(d)
	if err == nil {
		err = s.send(line)
	}
	if err != nil {
		s.Hear(fleet.Event{Type: "log", Level: "WARN", Text: "decision for call " + callID + " was not delivered: " + err.Error()})
	}
}
