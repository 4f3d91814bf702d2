package acp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

const promptMethod = acp.AgentMethodSessionPrompt

// killGrace lies between SIGTERM and SIGKILL when an interrupted prompt did
// not end in time.
const killGrace = 300 * time.Millisecond

// prompt is a prompt with what it attaches, which the log tells.
func (s *session) prompt(t *turn, past string, p fleet.Prompt) acp.PromptRequest {
	r := promptOf(s.id, past, p)
	files, said := s.attachments(p.Message)
	if said.Text != "" {
		t.emit(said)
	}
	r.Prompt = append(r.Prompt, files...)
	return r
}

func promptOf(session, past string, p fleet.Prompt) acp.PromptRequest {
	var blocks []acp.ContentBlock
	if past != "" {
		blocks = append(blocks, acp.TextBlock(past))
	}
	blocks = append(blocks, acp.TextBlock(p.Message))
	if p.URI != "" {
		blocks = append(blocks, acp.ResourceLinkBlock(filepath.Base(p.URI), p.URI))
	}
	r := acp.PromptRequest{SessionId: acp.SessionId(session), Prompt: blocks}
	if p.Traceparent != "" {
		r.Meta = map[string]any{"traceparent": p.Traceparent}
	}
	return r
}

// follow watches a turn until it ends.
func (a *agent) follow(t *turn, answer *jsonrpc.Call) task.Outcome {
	pe := t.s.pe
	stop := t.Stop
	var kill <-chan time.Time
	for {
		select {
		case <-answer.Done:
			next := a.explain(t, answer)
			if next == nil {
				return a.finished(t, answer)
			}
			answer = next
		case <-stop:
			stop = nil
			how := t.Ending()
			if pe.isFrozen(nil) || (how == keeper.ByStop || how == keeper.ByRestart) && !pe.isShared() {
				// Frozen, or to be ended anyway: nothing is asked of it.
				pe.end(how.String(), cell.Grace{Interrupt: 500 * time.Millisecond, Terminate: time.Second})
				continue
			}
			_ = pe.conn.Notify(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: acp.SessionId(t.s.id)})
			kill = time.After(a.Grace - killGrace)
		case <-kill:
			kill = nil
			t.Cancel() // its end must not wait for a log that does not move
			pe.end("it did not end a prompt that was to end", cell.Grace{Interrupt: -1, Terminate: killGrace})
		}
	}
}

// Bounds of what an agent is told of denials.
const (
	maxUntold    = 20 // in one prompt
	maxExplained = 10 // prompts of one task
)

// explain tells an agent whose turn just ended why what it asked for was denied, and what
// a person has said meanwhile, as its next prompt: the protocol has no other place for
// either. What the task comes to is then the end of that. It returns nil when there is
// nothing to tell.
func (a *agent) explain(t *turn, answer *jsonrpc.Call) *jsonrpc.Call {
	var end stopped
	if answer.Err != nil || jsonrpc.Decode(answer.Result, &end) != nil || t.Ending() != keeper.Running {
		return nil
	}
	if why := acp.StopReason(end.StopReason); why != acp.StopReasonEndTurn && why != acp.StopReasonCancelled {
		return nil
	}
	t.mu.Lock()
	reasons := t.untold
	if t.explained >= maxExplained {
		reasons = nil
	}
	t.untold, t.explained = nil, t.explained+1
	t.mu.Unlock()
	said := a.said(t)
	if len(reasons) == 0 && said == nil {
		return nil
	}
	s := t.s
	s.settle(t.Context)
	t.flushTalk()
	t.closeCalls("the agent told no end of it")
	t.settleUsage(end)
	t.mu.Lock()
	t.denied = false
	t.mu.Unlock()
	next := fleet.Prompt{Traceparent: t.Prompt.Traceparent}
	if len(reasons) > 0 {
		next.Message = "The operator denied what you asked for:\n" + strings.Join(reasons, "\n") + "\nGo on without it, and keep to what was said."
	}
	if said != nil {
		next.Message, next.URI = strings.TrimPrefix(next.Message+"\n\n"+said.Text, "\n\n"), said.URI
	}
	if !t.emit(fleet.Event{Type: "prompt", Text: next.Message}) {
		return nil
	}
	return s.pe.conn.Start(promptMethod, s.prompt(t, "", next))
}

// said is what a person wants the agent to be told before its task is over; nil for nothing.
func (a *agent) said(t *turn) *fleet.Message {
	if t.Prompt.Next == nil {
		return nil
	}
	m, err := t.Prompt.Next(t.Context)
	if err != nil { // it waits on, for the next task
		a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "what the agent was to be told could not be read: " + err.Error()})
	}
	return m
}

// Hears implements fleet.Steerer: the protocol has no way to say anything to an agent
// that works, so that it hears at the end of its turn.
func (a *agent) Hears() error { return fleet.ErrNextPrompt }

func (a *agent) Steer(string, string) error { return fleet.ErrNextPrompt }

// finished makes the outcome of a turn whose answer has come, or can't come
// any more.
func (a *agent) finished(t *turn, answer *jsonrpc.Call) task.Outcome {
	s := t.s
	t.mu.Lock()
	t.settled = true
	t.mu.Unlock()
	var end stopped
	malformed := error(nil)
	if answer.Err == nil {
		malformed = jsonrpc.Decode(answer.Result, &end)
	}
	gone := errors.Is(answer.Err, jsonrpc.ErrClosed) || t.lost(end)
	if gone {
		<-s.pe.Over // nothing of it is left when the prompt has ended
	}
	s.settle(t.Context)
	t.flushTalk()
	how := t.Ending()
	if how != keeper.Running && !gone {
		// An agent may say that it has stopped while its tools still run.
		s.terminals.endOf(t)
		s.pe.sweep(t)
	}
	if how == keeper.Running && !gone { // else what is open was cut off, which is told with the end
		t.closeCalls("the agent told no end of it")
	}
	if malformed != nil {
		return t.OnPurpose(keeper.Failure("agent_protocol", "the answer to the prompt is malformed: "+malformed.Error(), false))
	}
	t.settleUsage(end)
	if how == keeper.Running && !gone && answer.Err == nil {
		a.Mu.Lock()
		a.Keep.Well()
		a.Mu.Unlock()
	}
	if gone && answer.Err == nil {
		return t.OnPurpose(s.pe.broken(jsonrpc.ErrClosed))
	}
	if answer.Err != nil {
		out := s.pe.broken(answer.Err)
		if how == keeper.Running && !gone && out.Error.Retryable {
			out.Unsent = t.idle()
			a.refuses(s.pe, out.Error.Message)
		}
		return t.OnPurpose(out)
	}
	return t.OnPurpose(t.judged(end.StopReason))
}

// lost reports a turn that its agent calls cancelled, as nobody did, because the program
// that began it has died: some have a child that still talks then.
func (t *turn) lost(end stopped) bool {
	t.mu.Lock()
	denied := t.denied
	t.mu.Unlock()
	if acp.StopReason(end.StopReason) != acp.StopReasonCancelled || denied || t.Ending() != keeper.Running {
		return false
	}
	return t.s.pe.dies(lostPatience)
}

// dies reports whether the program has died, or does so soon after a word that may be its
// child's.
func (pe *peer) dies(patience time.Duration) bool {
	return pe.dying() || core.Within(pe.Proc.Done(), patience) || pe.dying()
}

// dying reports a program that has died and may not be told to have yet.
func (pe *peer) dying() bool {
	h, is := pe.Proc.(*keeper.Here)
	return is && h.Dying() || pe.Proc.Ended()
}

// census is which processes it consists of now. A host remembers that itself.
func (pe *peer) census() cell.Census {
	if h, is := pe.Proc.(*keeper.Here); is {
		return h.Census()
	}
	pe.Proc.Mark()
	return cell.Census{}
}

// lostPatience is how long the end of a program may come after its last word.
const lostPatience = 300 * time.Millisecond

// judged says what the agent's own reason for ending the turn means.
func (t *turn) judged(reason string) task.Outcome {
	text := t.text()
	t.mu.Lock()
	denied, denial := t.denied, t.denial
	t.mu.Unlock()
	out := task.Outcome{
		Status: task.Succeeded, Text: text,
		Output: core.MustEncode(map[string]string{"stop_reason": core.ClipTo(reason, 64), "text": text}),
	}
	set := func(status task.Status, code, message string, retryable bool) {
		out.Status, out.Error = status, &task.Error{Code: code, Message: core.ClipTo(message, keeper.MaxMessage), Retryable: retryable}
	}
	switch acp.StopReason(reason) {
	case acp.StopReasonEndTurn: // its own outcome, whatever was denied on the way
	case acp.StopReasonCancelled:
		if denied {
			set(task.Blocked, "approval_denied", "the agent ended the turn after a denial: "+denial, false)
		} else {
			set(task.Cancelled, "cancelled", "the agent ended the turn as cancelled", false)
		}
	case acp.StopReasonMaxTokens, acp.StopReasonMaxTurnRequests:
		set(task.Failed, "agent_limit", "the agent ended the turn at its limit: "+reason, true)
	case acp.StopReasonRefusal:
		set(task.Blocked, "refusal", "the agent refused the task: "+text, false)
	default:
		set(task.Failed, "agent_protocol", "the agent ended the turn for the unknown reason "+reason, false)
	}
	return out
}

// broken makes the outcome of a prompt that got an error for an answer.
func (pe *peer) broken(err error) task.Outcome {
	var refused *jsonrpc.Error
	switch {
	case !errors.As(err, &refused) && pe.Exit.Limited():
		return keeper.Failure("limit_exceeded", "the agent was lost: "+pe.lost(err), false)
	case !errors.As(err, &refused):
		return keeper.Failure("agent_killed", "the agent was lost: "+pe.lost(err), true)
	case refused.Code == authRequired:
		return keeper.Failure("agent_login", "the agent needs a login: "+refused.Error()+pe.way(), true)
	}
	return keeper.Failure("agent_failed", refused.Error(), refused.Code < jsonrpc.InvalidRequest || refused.Code > jsonrpc.InvalidParams)
}

// lost says how a process was lost.
func (pe *peer) lost(err error) string {
	pe.mu.Lock()
	why := pe.why
	pe.mu.Unlock()
	if end := pe.conn.Err(); end != nil && !errors.Is(err, end) {
		err = end
	}
	what := fmt.Sprintf("process %d %s", pe.Proc.PID(), pe.Exit.Describe())
	if why != "" {
		return what + ": " + why
	}
	if err.Error() == jsonrpc.ErrClosed.Error() {
		return what
	}
	return what + ": " + err.Error()
}

// sweep ends what a turn that was ended early has left running: all that its
// process did not have before. In a process where others work too, only what
// works in this agent's directory can be told to be its own.
func (pe *peer) sweep(t *turn) {
	h, is := pe.Proc.(*keeper.Here)
	if !is {
		pe.Proc.Prune(killGrace)
		return
	}
	keep := t.before.Has
	if pe.othersWork(t.s.a) {
		dir := t.s.a.place.machine().Real()
		keep = func(pid int, start uint64) bool {
			cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
			rel, bad := filepath.Rel(dir, cwd)
			return t.before.Has(pid, start) || err != nil || bad != nil || !filepath.IsLocal(rel)
		}
	}
	h.Process.Prune(keep, killGrace)
}
