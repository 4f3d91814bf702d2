// Package fleet keeps agents: who they are, how they are, what they were
// asked and what they said. It supervises their runtimes and carries out
// agent.prompt tasks, with every tool call gated by the judge.
//
// What is durable is the record of each agent (bucket "agent"); an agent's
// process is only ever driven towards what its record says. A status that was
// shown or acknowledged is on disk. After a crash no run is alive: records
// that say otherwise are repaired, and the questions those runs had open are
// voided, before any agent is opened.
package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/record"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/task"
)

// AgentStatus is the model's enum.
type AgentStatus string

// The statuses.
const (
	Starting AgentStatus = "starting"
	Idle     AgentStatus = "idle"
	Busy     AgentStatus = "busy"
	Offline  AgentStatus = "offline"
	Failed   AgentStatus = "failed"
)

// statuses in the order of an agent's life, for counters and error texts.
var statuses = [...]AgentStatus{Starting, Idle, Busy, Offline, Failed}

// Agent is one agent of the fleet (model 2).
type Agent struct {
	Name        string      `json:"name"`         // ^[a-zA-Z0-9-]{1,20}$, unique in the tenant
	WorkspaceID string      `json:"workspace_id"` // UUID of the runtime, else the same for the same tenant, runtime, name and directory
	Status      AgentStatus `json:"status"`
	Role        string      `json:"role"`
	Project     string      `json:"project"`
	LastTask    string      `json:"last_task,omitempty"` // the newest task's message, cut at 1000 bytes
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`

	LastTaskID string      `json:"last_task_id,omitempty"` // the newest task it took in hand
	LastStatus task.Status `json:"last_status,omitempty"`  // how that ended; "" while it is not over

	TenantID  string       `json:"tenant_id"`
	Runtime   string       `json:"runtime"` // "exec", "acp", "terminal", "coder"
	Command   []string     `json:"command,omitempty"`
	Env       secret.Env   `json:"env,omitempty"` // shows references only
	Dir       string       `json:"dir,omitempty"`
	Host      string       `json:"host,omitempty"`    // that it runs on, whose the directory is; "" for the engine's machine
	On        string       `json:"on,omitempty"`      // the labels by which that host was chosen; "" if it was named
	Options   core.Raw     `json:"options,omitempty"` // what its runtime alone understands
	Profile   string       `json:"profile,omitempty"` // how much of the machine its processes reach: reader, worker, open; "" where its runtime has no say
	SessionID string       `json:"session_id,omitempty"`
	Prompt    string       `json:"prompt,omitempty"`     // stands before each of its tasks, of an agent made from a role
	Tools     []string     `json:"tools,omitempty"`      // that it may ask for; none is all
	Reason    string       `json:"reason,omitempty"`     // why offline or failed, or what is wrong with it
	Said      string       `json:"last_lines,omitempty"` // what its process wrote before that
	TaskID    string       `json:"task_id,omitempty"`    // while busy
	Paused    bool         `json:"paused,omitzero"`
	Pausing   bool         `json:"pausing,omitzero"`    // asked, not yet acknowledged
	Stopped   bool         `json:"stopped,omitzero"`    // by an operator; stays so until started
	Attention string       `json:"attention,omitempty"` // the agent asks for a person
	Waiting   string       `json:"waiting,omitempty"`   // approval id it waits for, the oldest
	Asked     []string     `json:"asked,omitempty"`     // the others, oldest first
	Stuck     *Stuck       `json:"stuck,omitempty"`     // why it seems to get nowhere
	Trouble   *Trouble     `json:"trouble,omitempty"`   // why it can't work
	PID       int          `json:"pid,omitzero"`
	Restarts  int          `json:"restarts,omitzero"`
	Lacks     string       `json:"lacks,omitempty"` // layers of the wall that its newest process went without
	Usage     budget.Usage `json:"usage"`
	Context   Context      `json:"context,omitzero"`  // of its conversation, as it told last
	LogFrom   uint64       `json:"log_from,omitzero"` // lines of its log stream that belong to an earlier agent of this name
	Reused    bool         `json:"reused,omitzero"`   // an earlier agent of this name had tasks
	Forked    *Origin      `json:"forked,omitempty"`  // where it comes from, of a fork
	AuditSeq  uint64       `json:"audit_seq,omitzero"`
	*Offers                // what its program can be set to; nil while it has not said
}

// runs reports whether the record names a run or its process.
func (a *Agent) runs() bool { return a.works() || a.PID != 0 }

// Elsewhere reports whether its files are not on the engine's machine.
func (a *Agent) Elsewhere() bool { return a.Runtime == "coder" || a.Host != "" }

// works reports whether it names a run.
func (a *Agent) works() bool {
	return a.TaskID != "" || a.Waiting != "" || a.Attention != "" || a.Status == Busy
}

// letGo is for a run that is dead.
func (a *Agent) letGo() {
	a.TaskID, a.Waiting, a.Asked, a.Attention, a.Stuck, a.PID = "", "", nil, "", nil, 0
}

// asks notes that it waits for one more approval.
func (a *Agent) asks(approval string) {
	if a.Waiting == "" {
		a.Waiting = approval
		return
	}
	a.Asked = append(slices.Clone(a.Asked), approval) // other copies of the record share the list
}

// answered notes that it no longer waits for an approval, and whether it did.
func (a *Agent) answered(approval string) bool {
	waits := slices.DeleteFunc(append([]string{a.Waiting}, a.Asked...), func(id string) bool { return id == approval })
	if approval == "" || len(waits) > len(a.Asked) {
		return false
	}
	a.Waiting, a.Asked = "", nil
	for _, id := range waits {
		a.asks(id)
	}
	return true
}

// State is the common word for any runtime's status: starting, idle, working,
// waiting for you, stuck, pausing, paused, offline, failed.
func (a Agent) State() string {
	switch {
	case a.Waiting != "" || a.Attention != "" || a.Trouble != nil && !a.Stopped && a.Status != Idle && a.Status != Busy:
		return "waiting for you"
	case a.Pausing:
		return "pausing"
	case a.Paused:
		return "paused"
	case a.Stuck != nil && a.Status == Busy:
		return "stuck"
	case a.Status == Busy:
		return "working"
	}
	return string(a.Status)
}

// Origin is where a fork comes from.
type Origin struct {
	AgentID   string    `json:"agent_id"`
	Branch    string    `json:"branch"`    // the fork's own
	EventID   string    `json:"event_id"`  // of the record of that agent: it goes on from there
	Kind      dag.Kind  `json:"kind"`      // of that event
	Continued string    `json:"continued"` // "record": what was said until then was told from the record
	Intent    string    `json:"intent_id"`
	Since     time.Time `json:"since,omitzero"` // what is older was said by another agent of that name
	Alone     bool      `json:"alone,omitzero"` // only that event's run is its past
	Notes     []string  `json:"notes,omitempty"`
}

// Create asks for a new agent.
type Create struct {
	Name    string
	Project string // 1-64 printable characters
	Role    string // the same; "" means "coder" (model 2)
	Task    string // first task; "" gives none
	Runtime string // "" means "exec"
	Command []string
	Env     map[string]string
	Dir     string
	Host    string   // that it runs on; "" is the engine's machine, or chosen by On
	On      string   // the labels that its host must have, see host.ParseSelector; "" is no choice
	Options core.Raw // JSON object for the runtime; nil means {}
	Profile string   // reader, worker or open; "" is the runtime's default
	Session string   // session of the first task
	Prompt  string   // what stands before each of its tasks
	Tools   []string // that it may ask for, see Template; none is all
	Limits  *Limits  // its budget from the first task on; nil sets none
	Forked  *Origin  // of a fork
}

// Project is a set of agents' roles (model 2). It is made by creating an agent,
// by a swarm file, or learned from the server of a Catalog.
type Project struct {
	ID          string `json:"id"` // UUID of the catalog, else derived from tenant and name
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Role is a capability profile within a project (model 2).
type Role struct {
	ID          string `json:"id"` // UUID of the catalog, else derived from tenant, project and name
	Name        string `json:"name"`
	ProjectID   string `json:"project_id"`
	ProjectName string `json:"project_name"`
	*Template          // what agents are made with; nil of a role that is but a name
}

// HistoryItem is the model's Task of an agent.
type HistoryItem struct {
	Message            string      `json:"message"`
	URI                string      `json:"uri,omitempty"`
	NeedsUserAttention bool        `json:"needs_user_attention"` // it asked for a person, or waits for one
	CreatedAt          time.Time   `json:"created_at"`
	TaskID             string      `json:"task_id"`
	Status             task.Status `json:"status"`
}

const (
	countStatus = "agent.status" // begins the counters of agents by status

	attention record.Rows[string] = "agent.attention" // task id → why it asked for a person
)

func (f *roster) agentKind() record.Table[Agent] {
	return &record.Kind[*Agent]{
		Noun: "agent", Bucket: "agent", Ledger: f.opt.Ledger, Follow: f.follow,
		ID:       func(a *Agent) string { return a.Name },
		Stored:   func(a *Agent) any { return stored{a, a.Env} },
		Personal: func(e *record.Erasure, a *Agent) { a.erase(e) },
		Says:     "status role project runtime host task_id waiting paused pausing stopped",
		Indexes:  []record.Index[*Agent]{{Count: countStatus, Word: func(a *Agent) string { return string(a.Status) }}},
	}
}

// stored is an agent as it is kept, with all of its environment.
type stored struct {
	*Agent
	Env map[string]string `json:"env,omitempty"`
}

func (f *roster) projectKind() record.Table[Project] {
	return &record.Kind[*Project]{
		Noun: "project", Bucket: "project", Ledger: f.opt.Ledger,
		ID:    func(p *Project) string { return p.ID },
		Place: (*Project).key,
		Whole: true,
	}
}

func (p *Project) key() record.Key { return record.Key(p.Name) }

func (r *Role) key() record.Key { return record.Text(r.ProjectName).Last(r.Name) }

func (f *roster) roleKind() record.Table[Role] {
	return &record.Kind[*Role]{
		Noun: "role", Bucket: "role", Ledger: f.opt.Ledger,
		ID:    func(r *Role) string { return r.ID },
		Place: (*Role).key,
		Whole: true,
	}
}

// keep keeps a project or role that is not there yet, with learned also in place
// of another: the id may have been made up before the server was known.
func keep[T any](tx *audit.Tx, k record.Table[T], key record.Key, v T, learned bool) error {
	old, err := k.At(tx, key)
	if err != nil || old != nil && (!learned || k.Same(old, &v)) {
		return err
	}
	event := k.Called() + ".created"
	if learned {
		event = k.Called() + ".learned"
	}
	return k.Save(tx, record.Event{Type: event}, old, &v)
}

// errSame makes a change end without a write.
var errSame = errors.New("nothing changed")

// change applies fn to an agent's newest record, works out the status that
// follows, and saves it. fn may return errSame to leave everything as it is.
func (f *roster) change(ctx context.Context, by core.Caller, m *member, n record.Event, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	var out Agent
	err := f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
		out, err = f.changeIn(tx, m, n, fn)
		return err
	})
	return out, err
}

// changeIn is change inside a transaction.
func (f *roster) changeIn(tx *audit.Tx, m *member, n record.Event, fn func(tx *audit.Tx, a *Agent) error) (Agent, error) {
	old, err := f.agents.Load(tx, m.name)
	if err != nil {
		return Agent{}, err
	}
	if old == nil || f.member(m.tenant, m.name) != m {
		return Agent{}, core.Missing("agent", m.name)
	}
	a := *old
	if err := fn(tx, &a); errors.Is(err, errSame) {
		return a, nil
	} else if err != nil {
		return a, err
	}
	a.Status, a.Reason = m.status(&a)
	err = f.agents.Save(tx, n, old, &a)
	return a, err
}
