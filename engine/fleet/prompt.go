package fleet

import (
	"context"
	"fmt"

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

// Check implements swarm.Runner.
func (p prompts) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	in, err := readPrompt(input)
	if err != nil {
		return "", judge.Action{}, err
	}
	m, err := p.f.find(context.Background(), core.Self(tenant, "fleet"), in.Agent)
	if err != nil {
		return "", judge.Action{}, err
	}
	if m.closing() {
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

// Slot implements swarm.Runner.
func (p prompts) Slot(tenant, name string) (bool, string) {
	m := p.f.member(tenant, name)
	if m == nil {
		return false, fmt.Sprintf("agent %q does not exist", name)
	}
	return m.free()
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
		f: p.f, m: m, job: job, in: in, calls: map[string]string{},
		stop: make(chan struct{}), done: make(chan struct{}), progress: newProgress(p.f.opt.Stuck),
	}
	r.log, r.acts = newTranscript(r), newActs(r)
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
	old, err := p.f.agents.Load(tx, m.name)
	if err != nil || old == nil || old.LastTaskID != t.TaskID {
		return err
	}
	a := *old
	a.LastStatus, a.UpdatedAt = t.Status, tx.Now()
	return p.f.agents.Write(tx, old, &a)
}
