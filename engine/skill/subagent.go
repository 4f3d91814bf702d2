package skill

import (
	"fmt"
	"slices"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/record"
	"swarmdeck/engine/task"
	"swarmdeck/store"
)

// State is the model's AgentState.
type State string

// The states of a subagent. Completed and failed are final.
const (
	Idle      State = "idle"
	Running   State = "running"
	Paused    State = "paused"
	Completed State = "completed"
	Failed    State = "failed"
)

// States are all of them, in the order screens show them.
func States() []State { return []State{Idle, Running, Paused, Completed, Failed} }

// Final reports whether a subagent with this state is over.
func (s State) Final() bool { return s == Completed || s == Failed }

// transitions are the model's; from paused to failed is by cancel and stop.
var transitions = map[State][]State{
	Idle:    {Running, Failed},
	Running: {Paused, Completed, Failed},
	Paused:  {Running, Failed},
}

// Subagent is one execution context: it runs one skill with what that depends
// on, and is then over (model 3, Subagent). A record is never modified.
type Subagent struct {
	AgentID       string              `json:"agent_id"`
	Name          string              `json:"name,omitempty"` // at most 100 characters
	State         State               `json:"state"`
	AssignedSkill string              `json:"assigned_skill,omitempty"` // what it runs now, or is to run
	SkillParams   core.Raw            `json:"skill_params,omitzero"`    // of AssignedSkill
	Results       map[string]core.Raw `json:"results"`                  // by skill name; filled in when one is read
	Error         string              `json:"error,omitempty"`          // at most 1000 characters
	CreatedAt     time.Time           `json:"created_at"`
	StartedAt     time.Time           `json:"started_at,omitzero"`
	CompletedAt   time.Time           `json:"completed_at,omitzero"`
	Metadata      core.Raw            `json:"metadata,omitzero"` // JSON object of at most 20 keys

	TenantID  string    `json:"tenant_id"`
	Skill     string    `json:"skill,omitempty"`   // what it was asked to run, as asked
	TaskID    string    `json:"task_id,omitempty"` // the task that it runs
	TraceID   string    `json:"trace_id,omitempty"`
	SessionID string    `json:"session_id,omitempty"`
	Waiting   string    `json:"waiting,omitempty"` // approval that it waits for
	Stopping  bool      `json:"stopping,omitzero"` // it ends when its step has
	Step      string    `json:"step,omitempty"`    // place of AssignedSkill in the run
	CreatedBy string    `json:"created_by,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`

	left bool // no engine runs, so it does not either
}

// Shown is the state in the words that all agents share: idle, working,
// waiting for you, stopping, paused, completed, failed; and interrupted until
// another engine runs it.
func (a *Subagent) Shown() string {
	switch {
	case a.left:
		return "interrupted"
	case a.Waiting != "" && !a.State.Final():
		return "waiting for you"
	case a.State == Running && a.Stopping:
		return "stopping"
	case a.State == Running:
		return "working"
	}
	return string(a.State)
}

// Label is its name, or its id when it has none.
func (a *Subagent) Label() string {
	if a.Name != "" {
		return a.Name
	}
	return a.AgentID
}

// to moves a subagent to another state (model 3, State Transitions).
func (a *Subagent) to(next State, now time.Time) error {
	if can := transitions[a.State]; !slices.Contains(can, next) {
		may := "it is over"
		if len(can) > 0 {
			may = fmt.Sprintf("only %v", can)
		}
		return core.Errorf(core.Conflict, "subagent %s is %s: it can't become %s; %s", a.AgentID, a.State, next, may).With("field", "state").With("value", string(next))
	}
	a.State = next
	if next == Running && a.StartedAt.IsZero() {
		a.StartedAt = now
	}
	if next.Final() {
		a.CompletedAt, a.Waiting, a.Stopping = now, "", false
	}
	return nil
}

// Bounds of a subagent (model 3; the size of its metadata is ours).
const (
	maxMetadataKeys = 20
	maxMetadata     = 16 << 10 // bytes
	maxAgentError   = 1000     // characters
)

// Spawn asks for a new subagent.
type Spawn struct {
	Name     string   `allow:"at most 100 printable characters"`
	Metadata core.Raw // JSON object of at most 20 keys; nil is none
}

func (w *Spawn) check() error {
	if err := bound.Check(w); err != nil {
		return err
	}
	if len(w.Metadata) == 0 {
		return nil
	}
	if err := core.CheckObject("metadata", w.Metadata, maxMetadata); err != nil {
		return err
	}
	var keys map[string]core.Raw
	if err := core.Decode(w.Metadata, &keys); err != nil {
		return mapping.InField("metadata", err)
	}
	if len(keys) > maxMetadataKeys {
		return core.Invalid("metadata", fmt.Sprintf("%d keys", len(keys)), fmt.Sprintf("at most %d keys", maxMetadataKeys))
	}
	return nil
}

const (
	bAgentState store.Bucket = "subagent.state" // subagents by their state

	agentResults record.Rows[core.Raw] = "subagent.result" // number, skill name → result
	taskAgents   record.Rows[string]   = "subagent.task"   // task number → id of the subagent made for it
)

func (s *Skills) agentKind() record.Table[Subagent] {
	return &record.Kind[*Subagent]{
		Noun: "subagent", Bucket: "subagent", Ledger: s.ledger, Follow: s.follow,
		ID: func(a *Subagent) string { return a.AgentID }, Number: record.UUIDs("agent_id"),
		Stored: func(a *Subagent) any {
			kept := *a
			kept.Results = nil // beside it
			return &kept
		},
		Says: "state task_id assigned_skill waiting", Personal: eraseSubagent, Fits: (*Subagent).fits,
		Indexes: []record.Index[*Subagent]{{Bucket: bAgentState, Count: string(bAgentState), Word: func(a *Subagent) string { return string(a.State) }, By: func(f *core.Filter) *string { return &f.Status }}},
	}
}

// saveAgent writes a subagent in place of old.
func (s *Skills) saveAgent(tx *audit.Tx, old, a *Subagent, event string, detail any) error {
	err := s.agents.Save(tx, record.Event{Type: event, Trace: a.TraceID, Detail: detail}, old, a)
	if err == nil && s.opt.Record != nil {
		err = s.opt.Record.Subagent(tx, old, a)
	}
	return err
}

// Worker is the subagent that was made to run a task; "" when there is none.
func (s *Skills) Worker(tx *audit.Tx, t *task.Task) string {
	if t.Kind != KindInvoke {
		return ""
	}
	id, _, err := taskAgents.Get(tx, ofTask(t.TaskID))
	if err != nil {
		return ""
	}
	return id
}

// follow forgets the plan of a subagent that is over; it runs in commit order.
func (s *Skills) follow(tenant, id string, a *Subagent) {
	s.live.Follow(tenant, id, a)
	if a == nil || a.State.Final() {
		s.mu.Lock()
		delete(s.plans, id)
		s.mu.Unlock()
	}
}

// resultsOf is where the results of a tenant's own subagent are.
func resultsOf(tenant, id string) record.Key {
	n, _ := core.LocalUUID("agent_id", tenant, id)
	return record.Seq(n)
}

// withResults fills a subagent's results in.
func withResults(tx store.Tx, a *Subagent) error {
	a.Results = map[string]core.Raw{}
	return agentResults.Each(tx, resultsOf(tx.Tenant(), a.AgentID), func(skill record.Parts, result core.Raw) (bool, error) {
		a.Results[string(skill)] = result
		return true, nil
	})
}

// liveCount is how many subagents of the tenant are not over.
func (s *Skills) liveCount(tx store.Tx) (n int64) {
	for _, state := range liveStates() {
		n += s.agents.Counted(tx, string(bAgentState), string(state))
	}
	return n
}

func liveStates() []State { return []State{Idle, Running, Paused} }
