package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// kindPrompt is the kind of task by which an agent is asked (the fleet's).
const kindPrompt = "agent.prompt"

// NewAgentRunner returns the runner of kind "agent": the prompt, its ${param}
// filled in, goes to an agent as a task of its own, a child of the skill's in
// the same trace, through the same queue and gate. The agent's output is the
// result; where the output is nothing but a text that is one JSON object,
// that object is. Cancelling the skill cancels the child, pausing pauses it.
//
// A child is tried once: more tries are the skill's, and one that was denied
// ends the skill as blocked. The skill's time runs while the child does, not
// while the agent is busy or a person is asked. A try that finds a live
// child with the same prompt, left by an engine that closed, takes it over.
func NewAgentRunner(tasks *task.Table, queue *swarm.Swarm) Runner { return agentRunner{tasks, queue} }

type agentRunner struct {
	tasks *task.Table
	queue *swarm.Swarm
}

// Check implements Runner. Whether the agent exists is found out when it is
// asked: it may be created after the skill.
func (a agentRunner) Check(spec Spec) error {
	if spec.Agent == "" {
		return core.Invalid("runner.agent", spec.Agent, "the name of an agent")
	}
	if spec.Prompt == "" || len(spec.Prompt) > maxPrompt {
		return core.Invalid("runner.prompt", spec.Prompt, "a text of up to 16 KiB")
	}
	return nil
}

func (a agentRunner) Start(ctx context.Context, call Call) (swarm.Work, error) {
	message, err := fillPrompt(call.Skill.Runner.Prompt, call.Params)
	if err != nil {
		return nil, err
	}
	w := &agentWork{agentRunner: a, engine: ctx, call: call, input: core.MustEncode(promptInput{call.Skill.Runner.Agent, message})}
	w.Work = RunFunc(ctx, call, w.run)
	return w, nil
}

// promptInput is the input of an agent.prompt task.
type promptInput struct {
	Agent   string `json:"agent"`
	Message string `json:"message"`
}

// agentWork is one try: a child task and the wait for its end.
type agentWork struct {
	swarm.Work
	agentRunner
	engine context.Context // ends when the engine closes
	call   Call
	input  core.Raw

	mu      sync.Mutex
	by      core.Caller
	child   string // "" until it is known
	paused  bool
	running bool // the child has been seen running, so that it can be paused
	denied  bool // the child was
}

func (w *agentWork) Outcome() task.Outcome {
	o := w.Work.Outcome()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.denied && o.Status == task.Failed {
		o.Status = task.Blocked
	}
	return o
}

func (w *agentWork) run(ctx context.Context, call Call, hold *Hold) (core.Raw, error) {
	child, err := w.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask agent %s: %w", call.Skill.Runner.Agent, err)
	}
	call.Log("INFO", fmt.Sprintf("asked agent %s: task %s", call.Skill.Runner.Agent, child.TaskID))
	var end task.Task
	if paused := hold.Idle(ctx, func() { end, err = w.await(ctx, child.TaskID) }); err == nil {
		err = paused
	}
	if ctx.Err() != nil {
		w.cancelChild(ctx, child.TaskID)
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("wait for task %s: %w", child.TaskID, err)
	}
	return w.reply(ctx, end)
}

// ask finds the live child of an interrupted try, or dispatches one in the
// name of whoever asked for the skill.
func (w *agentWork) ask(ctx context.Context) (task.Task, error) {
	parent, err := w.tasks.Get(ctx, w.call.Tenant, w.call.TaskID)
	if err != nil {
		return task.Task{}, err
	}
	by := parent.Asker()
	by.Door = cmp.Or(by.Door, core.DoorEngine)
	child, err := w.left(ctx)
	if err == nil && child.TaskID == "" {
		once := 0
		child, err = w.queue.Dispatch(ctx, by, swarm.Dispatch{
			Kind: kindPrompt, Input: w.input, Parent: parent.TaskID, Session: parent.SessionID,
			Priority: &parent.Priority, MaxAttempts: &once,
			Intent: "skill " + w.call.Skill.Ref() + " asks agent " + w.call.Skill.Runner.Agent,
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by, w.child = by, child.TaskID
	return child, err
}

// left is a live child with this very prompt, zero for none.
func (w *agentWork) left(ctx context.Context) (task.Task, error) {
	tree, err := w.tasks.Tree(ctx, w.call.Tenant, w.call.TaskID)
	if err != nil {
		return task.Task{}, err
	}
	for _, t := range tree {
		if t.ParentTaskID != w.call.TaskID || t.Kind != kindPrompt || t.Status.Terminal() || t.CancelRequested {
			continue
		}
		t, err := w.tasks.Get(ctx, w.call.Tenant, t.TaskID)
		if err != nil {
			return task.Task{}, err
		}
		if string(t.Input) == string(w.input) {
			return t, nil
		}
	}
	return task.Task{}, nil
}

// await follows the child to its end, and applies a pause that was asked for
// before it ran.
func (w *agentWork) await(ctx context.Context, id string) (task.Task, error) {
	t, err := w.begun(ctx, id)
	if err != nil || t.Status.Terminal() {
		return t, err
	}
	w.mu.Lock()
	w.running = true
	paused := w.paused
	w.mu.Unlock()
	if paused != t.Paused { // also one that an engine which closed has left paused
		if err := w.setPaused(ctx, paused); err != nil {
			return t, err
		}
	}
	return w.tasks.Wait(ctx, w.call.Tenant, id, "")
}

// begun waits until the child runs. That may take until the agent is free and
// a person has approved it, which is no time of the skill's.
func (w *agentWork) begun(ctx context.Context, id string) (task.Task, error) {
	w.call.Waits(true)
	defer w.call.Waits(false)
	return w.tasks.Wait(ctx, w.call.Tenant, id, task.Running)
}

// cancelChild ends the child of a try that was cancelled. One that a closing
// engine interrupts stays, for the try after the start.
func (w *agentWork) cancelChild(ctx context.Context, id string) {
	c, ours := errors.AsType[*cutShort](context.Cause(ctx))
	if w.engine.Err() != nil || !ours {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer stop()
	if _, err := w.queue.Cancel(ctx, w.by, id, c.reason); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		w.call.Log("WARN", fmt.Sprintf("cancel task %s: %v", id, err))
	}
}

// Pause implements swarm.Work; it is in effect when the child stands still.
func (w *agentWork) Pause(ctx context.Context) error {
	return errors.Join(w.Work.Pause(ctx), w.hold(ctx, true))
}

func (w *agentWork) Resume(ctx context.Context) error {
	return errors.Join(w.hold(ctx, false), w.Work.Resume(ctx))
}

// hold pauses or resumes the child, at once if it runs, else when it does.
func (w *agentWork) hold(ctx context.Context, paused bool) error {
	w.mu.Lock()
	w.paused = paused
	running := w.running
	w.mu.Unlock()
	if !running {
		return nil
	}
	if err := w.setPaused(ctx, paused); err != nil || !paused {
		return err
	}
	for {
		why, err := w.queue.Why(ctx, w.call.Tenant, w.child)
		if err != nil {
			return fmt.Errorf("see whether task %s stands still: %w", w.child, err)
		}
		if !why.Moving {
			return nil
		}
		if core.Within(ctx.Done(), pausePoll) {
			return fmt.Errorf("pause task %s: not acknowledged: %w", w.child, ctx.Err())
		}
	}
}

// pausePoll is how often is looked whether a child stands still: the swarm
// tells of changes of tasks, and this is none.
const pausePoll = 10 * time.Millisecond

// setPaused asks the swarm; a child that is over or has it so already is fine.
func (w *agentWork) setPaused(ctx context.Context, paused bool) (err error) {
	verb := "pause"
	if paused {
		_, err = w.queue.PauseTask(ctx, w.by, w.child, "its skill is paused")
	} else {
		verb = "resume"
		_, err = w.queue.ResumeTask(ctx, w.by, w.child)
	}
	if err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return fmt.Errorf("%s task %s: %w", verb, w.child, err)
	}
	return nil
}

// reply is the result of a child that is over.
func (w *agentWork) reply(ctx context.Context, t task.Task) (core.Raw, error) {
	r, err := w.tasks.Result(ctx, t.TenantID, t.TaskID)
	if err != nil {
		return nil, fmt.Errorf("read the result of task %s: %w", t.TaskID, err)
	}
	if r.Status == task.Succeeded {
		return objectOf(r.Output), nil
	}
	f := &Failure{Code: "agent_failed", Message: fmt.Sprintf("agent %s: task %s ended %s", w.call.Skill.Runner.Agent, t.TaskID, r.Status)}
	if r.Error != nil {
		f.Code, f.Message, f.Retryable = r.Error.Code, f.Message+": "+r.Error.Message, r.Error.Retryable
	}
	if r.Status == task.Cancelled {
		f.Code = "agent_cancelled"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied = r.Status == task.Blocked
	return nil, f
}

// objectOf is an agent's output, or the one JSON object that its text is.
func objectOf(output core.Raw) core.Raw {
	if len(output) == 0 {
		return core.Raw(`{}`)
	}
	var whole string
	plain := output.Kind() == '{'
	_ = mapping.EachText(output, func(dec *jsontext.Decoder, name bool, text string) error {
		switch at := strings.TrimPrefix(mapping.Place(dec.StackPointer()), "."); {
		case name && !strings.Contains(" text stdout rc stop_reason ", " "+at+" "):
			plain = false // it says more than a text
		case !name && (at == "text" || at == "stdout"):
			whole = text
		}
		return nil
	})
	whole = unfenced(strings.TrimSpace(whole))
	if !plain || core.CheckObject("output", []byte(whole), MaxResult) != nil {
		return output
	}
	return core.Raw(whole)
}

// unfenced is what stands in a code fence that is the whole text, as models
// like to answer.
func unfenced(s string) string {
	rest, opened := strings.CutPrefix(s, "```")
	inner, closed := strings.CutSuffix(rest, "```")
	lang, body, lines := strings.Cut(inner, "\n")
	if !opened || !closed || !lines || strings.ContainsAny(lang, "{}") {
		return s
	}
	return strings.TrimSpace(body)
}
