package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// KindPrompt is the kind of task that the fleet carries out.
const KindPrompt = "agent.prompt"

// Runner carries out the fleet's tasks for the swarm.
func (f *Fleet) Runner() swarm.Runner { return prompts{f} }

// prompts is the fleet as the swarm's runner of agent.prompt tasks.
type prompts struct{ f *Fleet }

var _ task.Follower = prompts{}

// prompt is the input of an agent.prompt task.
type prompt struct {
	Agent   string `json:"agent"`
	Message string `json:"message"`
	URI     string `json:"uri,omitempty"`
}

func readPrompt(input core.Raw) (prompt, error) {
	var p prompt
	if err := core.Decode(input, &p); err != nil {
		return p, fmt.Errorf("input: %w", err)
	}
	if err := checkName(p.Agent); err != nil {
		return p, core.Invalid("agent", p.Agent, "1-20 of a-z A-Z 0-9 -")
	}
	if err := checkMessage(p.Message); err != nil {
		return p, err
	}
	return p, checkURI(p.URI)
}

func (p prompts) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	in, err := readPrompt(input)
	if err != nil {
		return "", judge.Action{}, err
	}
	m, err := p.f.find(context.Background(), core.Self(tenant, "fleet"), in.Agent)
	if err != nil {
		return "", judge.Action{}, err
	}
	if m.look().gone {
		return "", judge.Action{}, core.Missing("agent", in.Agent)
	}
	return oneLine(in.Message, maxTitle), judge.Action{
		Kind: KindPrompt, Server: m.rec.Load().Runtime, Args: core.MustEncode(in),
	}, nil
}

// Target is the agent that an input names, "" when it names none.
func (prompts) Target(input core.Raw) string {
	in, err := readPrompt(input)
	if err != nil {
		return ""
	}
	return in.Agent
}

// AgentRef is what the judge's rules may know about an agent.
func (p prompts) AgentRef(tenant, name string) judge.AgentRef {
	m := p.f.member(tenant, name)
	if m == nil {
		return judge.AgentRef{Name: name}
	}
	a := m.rec.Load()
	return judge.AgentRef{Name: a.Name, Role: a.Role, Project: a.Project, Profile: a.Profile}
}

func (p prompts) Slot(tenant, name string) (bool, string) {
	m := p.f.member(tenant, name)
	if m == nil {
		return false, fmt.Sprintf("agent %q does not exist", name)
	}
	if p.f.opt.Held != nil {
		if why := p.f.opt.Held(tenant, name); why != "" {
			return false, why
		}
	}
	return m.free()
}

// Stands says that an agent is paused, if it is.
func (p prompts) Stands(tenant, name string) string {
	m := p.f.member(tenant, name)
	if m == nil {
		return ""
	}
	switch a := m.rec.Load(); {
	case a.Paused:
		return "agent " + name + " is paused"
	case a.Pausing:
		return "agent " + name + " is paused, not yet acknowledged"
	}
	return ""
}

// Start implements swarm.Runner. The agent is taken at once; a run that finds
// it taken waits for its turn, which does not count as an attempt.
func (p prompts) Start(ctx context.Context, job swarm.Job) (swarm.Work, error) {
	in, err := readPrompt(job.Task.Input)
	if err != nil {
		return nil, err
	}
	m := p.f.member(job.Task.TenantID, in.Agent)
	if m == nil {
		return nil, core.Missing("agent", in.Agent)
	}
	r := &run{
		f: p.f, m: m, job: job, in: in,
		stop: make(chan struct{}), done: make(chan struct{}), progress: newProgress(p.f.opt.Stuck),
	}
	r.log = &transcript{r: r}
	r.acts = &acts{r: r, calls: map[string]*known{}, dirty: map[int]Call{}, diffs: map[int]Diff{}, head: Activity{TaskID: job.Task.TaskID}}
	r.take()
	go r.work(ctx)
	return r, nil
}

// Moved implements task.Follower: the agent that had the task last says how
// it ended. The task's own event audits it.
func (p prompts) Moved(tx *audit.Tx, t *task.Task, _ task.Status) error {
	m := p.f.member(t.TenantID, t.Agent)
	if m == nil || !t.Status.Terminal() {
		return nil
	}
	tx.OnCommit(m.ring) // what waits behind it goes on
	old, err := p.f.agents.Load(tx, m.name)
	if err != nil || old == nil || old.LastTaskID != t.TaskID {
		return err
	}
	a := *old
	a.LastStatus, a.UpdatedAt = t.Status, tx.Now()
	return p.f.agents.Write(tx, old, &a)
}

// Assign gives an idle agent a task. Every other agent refuses (CONFLICT,
// AgentBusyError), also one whose last assignment has not started yet.
func (f *Fleet) Assign(ctx context.Context, by core.Caller, name, message, uri string) (task.Task, error) {
	return f.AssignWhenReady(ctx, by, name, message, uri, 0)
}

// AssignWhenReady is Assign with patience for an agent that is just starting,
// as all are when an engine has begun to run; any other state refuses at once.
func (f *Fleet) AssignWhenReady(ctx context.Context, by core.Caller, name, message, uri string, patience time.Duration) (task.Task, error) {
	if err := errors.Join(checkMessage(message), checkURI(uri)); err != nil {
		return task.Task{}, core.AsError(err)
	}
	m, err := f.find(ctx, by, name)
	if err != nil {
		return task.Task{}, err
	}
	m.poke(by)
	select { // one assignment at a time, or two could both find it idle
	case m.offer <- struct{}{}:
		defer m.offered()
	case <-ctx.Done():
		return task.Task{}, ctx.Err()
	}
	end := time.Now().Add(patience)
	for {
		m.await(ctx, time.Until(end), func() bool { return m.gone || m.rec.Load().Status != Starting })
		err := f.idle(ctx, m)
		if err == nil {
			break
		}
		if m.look().gone || m.rec.Load().Status != Starting || ctx.Err() != nil || !time.Now().Before(end) {
			return task.Task{}, err
		}
	}
	return f.give(ctx, by, m, message, uri, m.rec.Load().SessionID)
}

// idle reports why an agent may not be given a task now.
func (f *Fleet) idle(ctx context.Context, m *member) error {
	now, a := m.look(), m.rec.Load()
	switch {
	case now.gone:
		return core.Missing("agent", m.name)
	case now.run != nil: // also when its record does not say so yet
		return busy(a, "works on task "+now.run.job.Task.TaskID)
	case a.Pausing || a.Paused:
		return busy(a, "is paused")
	case a.Status == Starting && !now.watched:
		// No engine runs that could finish starting it: the next one does
		// that first, and the task waits in the queue until then.
	case a.Status != Idle:
		return busy(a, "is "+string(a.Status))
	}
	next, err := f.next(ctx, m)
	if err != nil {
		return err
	}
	if next != "" {
		return busy(a, "is about to start task "+next)
	}
	return nil
}

// next is the task that was assigned and is not over: in the queue, or just
// starting. One that waits there for a person keeps nobody from giving the
// agent other work.
func (f *Fleet) next(ctx context.Context, m *member) (string, error) {
	now := m.look()
	if now.run != nil {
		return now.run.job.Task.TaskID, nil
	}
	if now.assigned == "" {
		return "", nil
	}
	t, err := f.opt.Tasks.Get(ctx, m.tenant, now.assigned)
	if err != nil {
		return "", fmt.Errorf("look at the agent's next task: %w", err)
	}
	if t.Status.Terminal() || t.Waiting != "" {
		return "", nil
	}
	return now.assigned, nil
}

// CancelTask interrupts the agent's task, or takes the assigned one out of
// the queue. It returns when the agent is free again, at most 5 s later.
func (f *Fleet) CancelTask(ctx context.Context, by core.Caller, name string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	id := m.rec.Load().TaskID
	if id == "" {
		if id, err = f.next(ctx, m); err != nil {
			return Agent{}, err
		}
	}
	if id == "" {
		return Agent{}, core.Errorf(core.Conflict, "agent %s has no task to cancel", name).With("field", "agent").With("value", name)
	}
	if err := f.endTask(ctx, by, m, id, "cancelled at agent "+name+" by "+core.ClipTo(by.Name, maxCall)); err != nil {
		return Agent{}, err
	}
	return *m.rec.Load(), nil
}

// graceWait is how long an interrupted prompt may take before its process is
// ended instead; with it an agent is free within 5 s.
const graceWait = 4 * time.Second

// endTask cancels a task and waits until the agent has let go of it.
func (f *Fleet) endTask(ctx context.Context, by core.Caller, m *member, id, reason string) error {
	if _, err := f.opt.Swarm.Cancel(ctx, by, id, reason); err != nil && !errors.Is(err, core.Kind(core.Conflict)) {
		return fmt.Errorf("cancel task %s: %w", id, err)
	}
	released := func() bool { return m.run == nil || m.run.job.Task.TaskID != id }
	if m.await(ctx, graceWait, released) {
		return nil
	}
	h, r := m.now()
	if h == nil || r == nil || r.job.Task.TaskID != id {
		return nil
	}
	if err := h.Restart(ctx); err != nil {
		return fmt.Errorf("end the process of agent %s: %w", m.name, err)
	}
	m.await(ctx, time.Second, released)
	return nil
}

// Outlasts says whether what an agent works on goes on when the engine dies.
func (p prompts) Outlasts(tenant, agent string) bool {
	m := p.f.member(tenant, agent)
	if m == nil {
		return false
	}
	rt, ok := p.f.opt.Runtimes[m.rec.Load().Runtime].(Outlasting)
	return ok && rt.Outlasts()
}
