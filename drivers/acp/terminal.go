package acp

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"
	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/secret"
)

// Bounds of the commands that one session runs through us.
const (
	maxTerminals = 32
	keptOutput   = 1 << 20 // bytes of each, unless the agent asks for fewer
)

// terminals are the commands that a session runs through us.
type terminals struct {
	mu     sync.Mutex
	open   map[string]*terminal
	last   int
	closed bool
}

// terminal is one command. Its process is one of the agent's runs: it is
// paused and ended with it.
type terminal struct {
	proc keeper.Process
	turn *turn  // that it was started in
	free func() // lets go of what it was bound to
	mask *secret.Mask
	done chan struct{}

	out pipe.Kept // the end of what it printed

	mu    sync.Mutex
	ended bool
}

// terminalRequest is what an agent wants to run.
type terminalRequest struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Env     []envVar `json:"env,omitempty"`
	Limit   *int     `json:"outputByteLimit,omitzero"`
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (t *turn) createTerminal(r *jsonrpc.Request) {
	var in terminalRequest
	if err := jsonrpc.Decode(r.Params, &in); err != nil || in.Command == "" {
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "a terminal needs a command"))
		return
	}
	e := t.ours("terminal/create", core.MustEncode(in), strings.Join(append([]string{in.Command}, in.Args...), " "), "")
	e.Bind = t.bindTerminal
	t.ask(e, func(ans fleet.ToolAnswer) {
		if !granted(r, ans) {
			return
		}
		id, err := t.startTerminal(ans.Args, ans.Files)
		t.told(e, err)
		if err != nil {
			r.Fail(fileError(err))
			return
		}
		r.Reply(acp.CreateTerminalResponse{TerminalId: id})
	})
}

// terminalSpec is what a request would start, in the agent's directory, and
// how much of its output is to be kept; nil is our bound.
func (t *turn) terminalSpec(args core.Raw) (cell.Spec, *int, error) {
	var in terminalRequest
	if err := core.Decode(args, &in); err != nil {
		return cell.Spec{}, nil, err
	}
	p := t.s.a.place
	spec := p.Spec
	spec.Argv = append([]string{in.Command}, in.Args...)
	if len(in.Args) == 0 { // some agents send one line for a shell
		spec.Argv = []string{"/bin/sh", "-c", in.Command}
	}
	if in.Cwd != "" {
		real, err := p.machine().Sub(in.Cwd)
		if err != nil {
			return spec, nil, err
		}
		spec.Dir = real
	}
	spec.Env = map[string]string{}
	maps.Copy(spec.Env, t.s.pe.env)
	for _, v := range in.Env {
		spec.Env[v.Name] = v.Value
	}
	return spec, in.Limit, nil
}

// bindTerminal finds the files that a request names.
func (t *turn) bindTerminal(args core.Raw) []judge.File {
	spec, _, err := t.terminalSpec(args)
	if err != nil {
		return nil
	}
	return t.s.a.place.machine().Look(spec)
}

// startTerminal runs an approved command, if the files that it names are still
// what was judged.
func (t *turn) startTerminal(args core.Raw, files []judge.File) (string, error) {
	spec, limit, err := t.terminalSpec(args)
	if err != nil {
		return "", err
	}
	term := &terminal{turn: t, mask: t.s.pe.Mask, done: make(chan struct{}), out: pipe.Kept{Most: keptOutput, End: true}}
	if limit != nil && *limit >= 0 {
		term.out.Most = min(*limit, keptOutput)
	}
	return t.s.terminals.start(t.s.a.place, spec, files, term)
}

func (ts *terminals) start(at place, spec cell.Spec, files []judge.File, term *terminal) (id string, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return "", core.Errorf(core.Unavailable, "the session is over")
	}
	if len(ts.open) >= maxTerminals {
		return "", core.Errorf(core.Conflict, "%d terminals are open already", maxTerminals)
	}
	if term.proc, term.free, err = at.run(spec, files); err != nil {
		return "", fmt.Errorf("start the command: %w", err)
	}
	ts.last++
	id = fmt.Sprintf("term-%d", ts.last)
	ts.open[id] = term
	go term.follow()
	return id, nil
}

// follow keeps what the command prints until nothing of it is left.
func (term *terminal) follow() {
	defer close(term.done)
	defer term.free()
	in, outs, errs := term.proc.Streams()
	in.Close()
	read := func(from io.Reader) {
		out := term.mask.Writer(&term.out)
		defer out.Close()
		_, _ = io.Copy(out, from)
	}
	drained := core.Side(func() { read(outs) }, func() { read(errs) })
	<-term.proc.Done()
	for range 2 { // what it left behind may hold a pipe
		core.Within(drained, drainPatience)
		_ = term.proc.Stop(cell.Grace{Interrupt: -1, Terminate: afterGrace})
	}
	term.proc.CloseIO()
	<-drained
	term.mu.Lock()
	term.ended = true
	term.mu.Unlock()
}

func (term *terminal) output() acp.TerminalOutputResponse {
	term.mu.Lock()
	defer term.mu.Unlock()
	text := term.out.Bytes()
	out := acp.TerminalOutputResponse{Truncated: term.out.Cut()}
	for out.Truncated && len(text) > 0 && !utf8.RuneStart(text[0]) { // it begins within a character
		text = text[1:]
	}
	out.Output = strings.ToValidUTF8(string(text), "\uFFFD")
	if term.ended {
		exit := term.exit()
		out.ExitStatus = &acp.TerminalExitStatus{ExitCode: exit.ExitCode, Signal: exit.Signal}
	}
	return out
}

func (term *terminal) exit() acp.WaitForTerminalExitResponse {
	exit := term.proc.Exit()
	if exit.Signal != 0 {
		name := unix.SignalName(exit.Signal)
		return acp.WaitForTerminalExitResponse{Signal: &name}
	}
	return acp.WaitForTerminalExitResponse{ExitCode: &exit.Code}
}

// serveTerminal answers what is asked about a command that was approved.
func (s *session) serveTerminal(r *jsonrpc.Request) {
	var in struct {
		TerminalID string `json:"terminalId"`
	}
	_ = jsonrpc.Decode(r.Params, &in)
	s.terminals.mu.Lock()
	term := s.terminals.open[in.TerminalID]
	if r.Method == acp.ClientMethodTerminalRelease {
		delete(s.terminals.open, in.TerminalID)
	}
	s.terminals.mu.Unlock()
	if term == nil {
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidParams, "there is no terminal %q", core.ClipTo(in.TerminalID, 80)))
		return
	}
	if r.Method == acp.ClientMethodTerminalOutput {
		r.Reply(term.output())
		return
	}
	if s.pe.waits.Add(1) > maxWaits {
		s.pe.waits.Add(-1)
		r.Fail(jsonrpc.Errorf(jsonrpc.InvalidRequest, "%d requests wait for commands already", maxWaits))
		return
	}
	go func() {
		defer s.pe.waits.Add(-1)
		if r.Method == acp.ClientMethodTerminalWaitForExit {
			<-term.done
			r.Reply(term.exit())
			return
		}
		_ = term.kill() // kill, release
		r.Reply(struct{}{})
	}()
}

func (term *terminal) kill() error {
	err := term.proc.Stop(cell.Grace{Interrupt: -1, Terminate: afterGrace})
	<-term.done
	return err
}

// endOf kills the commands of one turn.
func (ts *terminals) endOf(t *turn) {
	ts.mu.Lock()
	list := slices.Collect(maps.Values(ts.open))
	ts.mu.Unlock()
	_ = core.Each(core.Where(list, func(term *terminal) bool { return term.turn == t }), (*terminal).kill)
}

// each applies a change to every command that runs.
func (ts *terminals) each(ctx context.Context, act func(keeper.Process, context.Context) error) error {
	ts.mu.Lock()
	list := slices.Collect(maps.Values(ts.open))
	ts.mu.Unlock()
	for _, term := range list {
		if core.IsOver(term.proc.Done()) {
			continue
		}
		if err := act(term.proc, ctx); err != nil {
			return err
		}
	}
	return nil
}

// close kills every command, and waits for that.
func (ts *terminals) close() {
	ts.mu.Lock()
	ts.closed = true
	list := slices.Collect(maps.Values(ts.open))
	ts.open = map[string]*terminal{}
	ts.mu.Unlock()
	_ = core.Each(list, (*terminal).kill)
}
