package cad

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Status is the model's agent status.
type Status string

// The statuses of an agent.
const (
	Idle       Status = "idle"
	Working    Status = "working"
	Failing    Status = "error" // its newest operation failed; the next one clears it
	Terminated Status = "terminated"
)

// Statuses are all of them, in the order screens show them.
func Statuses() []Status { return []Status{Idle, Working, Failing, Terminated} }

// transitions are the model's. An error is cleared as the next operation begins.
var transitions = map[Status][]Status{
	Idle:    {Working, Terminated},
	Working: {Idle, Failing, Terminated},
	Failing: {Idle, Terminated},
}

// Agent is one CAD agent (model 5, Agent). A record is never modified.
type Agent struct {
	AgentID         string   `json:"agent_id"`
	Role            string   `json:"role"` // name of its RoleTemplate
	WorkspaceID     string   `json:"workspace_id"`
	FleetAgent      string   `json:"fleet_agent,omitempty"` // agent of the fleet that acts as it
	OperationCount  int      `json:"operation_count"`       // attempted
	SuccessCount    int      `json:"success_count"`
	ErrorCount      int      `json:"error_count"`
	CreatedEntities []string `json:"created_entities"` // the newest 256
	ErrorLog        []string `json:"error_log"`        // the newest 20, the newest last
	Status          Status   `json:"status"`
	CreatedAt       Seconds  `json:"created_at"`
	LastActive      Seconds  `json:"last_active"`

	TenantID       string `json:"tenant_id"`
	CreatedCount   int    `json:"created_count"`   // entities made, those that created_entities has no room for too
	RoleViolations int    `json:"role_violations"` // operations that its role does not allow
	// ViolationsInRow are those since an operation that it was allowed. From 3
	// on the agent is shown as one that keeps trying.
	ViolationsInRow int     `json:"violations_in_row,omitzero"`
	Operation       string  `json:"operation,omitempty"`   // method under way
	TaskID          string  `json:"task_id,omitempty"`     // that the operation under way belongs to
	Waiting         string  `json:"approval_id,omitempty"` // approval that it waits for
	CreatedBy       string  `json:"created_by,omitempty"`
	TerminatedAt    Seconds `json:"terminated_at,omitzero"`
	AuditSeq        uint64  `json:"audit_seq,omitzero"`
}

// Stubborn is from how many violations in a row an agent is shown as one that
// keeps trying what its role forbids.
const Stubborn = 3

// Shown is the status in the words that all agents share: idle, working,
// waiting for you, failed, offline.
func (a *Agent) Shown() string {
	switch {
	case a.Status == Terminated:
		return "offline"
	case a.Waiting != "":
		return "waiting for you"
	case a.Status == Failing:
		return "failed"
	}
	return string(a.Status)
}

// to moves an agent to another status (model 5, State Transitions).
func (a *Agent) to(next Status) error {
	if can := transitions[a.Status]; !slices.Contains(can, next) {
		may := "that is final"
		if len(can) > 0 {
			may = fmt.Sprintf("only %v", can)
		}
		return core.Errorf(core.Conflict, "agent %s is %s: it can't become %s; %s", a.AgentID, a.Status, next, may).With("field", "status").With("value", string(next))
	}
	a.Status = next
	return nil
}

// Bounds of what an agent's record keeps.
const (
	maxCreated   = 256
	maxErrors    = 20
	maxErrorText = 500 // bytes of one entry of the error log
	maxAgentID   = 64  // bytes
)

// namePattern is what agents, roles, scenarios and tasks may be called, and
// planName says so.
var namePattern = core.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

const planName = "1-64 of A-Z a-z 0-9 _ . -, a letter or _ first"

// checkAgentID reports a name that no agent can have.
func checkAgentID(field, id string) error {
	if slices.Contains(bus.Components(), id) {
		return core.Invalid(field, id, "any but "+strings.Join(bus.Components(), ", ")+", which stand for the engine's own in messages")
	}
	if !namePattern().MatchString(id) {
		return core.Invalid(field, id, planName)
	}
	return nil
}

// CreateAgent asks for a new agent (controller operation create_agent).
type CreateAgent struct {
	AgentID     string `json:"agent_id"`
	RoleName    string `json:"role_name"`
	WorkspaceID string `json:"workspace_id"`
	// Workspace, when set, makes the workspace if there is none of that id, in
	// the same transaction; its WorkspaceID is left empty.
	Workspace *CreateWorkspace `json:"workspace,omitzero"`
}

func (a *Agent) failed(text string) {
	a.ErrorCount++
	a.ErrorLog = newest(append(slices.Clip(a.ErrorLog), core.ClipTo(text, maxErrorText)), maxErrors)
}

func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// CreateAgent makes an agent (controller operation create_agent). Its workspace
// must be there, or be made along with it.
func (c *modelling) CreateAgent(ctx context.Context, by core.Caller, w CreateAgent) (Agent, error) {
	if err := checkAgentID("agent_id", w.AgentID); err != nil {
		return Agent{}, err
	}
	role, err := c.Role(by.Tenant, w.RoleName)
	if err != nil {
		return Agent{}, err
	}
	if c.taken(by.Tenant, w.AgentID) {
		return Agent{}, isTaken("agent_id", w.AgentID, "another agent or subagent has this name")
	}
	begun, err := c.spaceFor(ctx, by, w)
	if err != nil {
		return Agent{}, err
	}
	var made Agent
	err = c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if was, err := c.kinds.agent.Load(tx, w.AgentID); err != nil {
			return err
		} else if was != nil {
			return isTaken("agent_id", w.AgentID, "there is an agent of this name, "+string(was.Status))
		}
		if begun != nil {
			if err := c.beginIn(tx, begun); err != nil {
				return err
			}
		}
		made, err = c.newAgent(tx, Seat{w.AgentID, role.Name, w.WorkspaceID})
		return err
	})
	return made, audit.Explain("create agent "+w.AgentID, err)
}

// newAgent stores an agent, of whose id there is none.
func (c *roster) newAgent(tx *audit.Tx, seat Seat) (Agent, error) {
	made := Agent{
		TenantID: tx.Tenant(), AgentID: seat.AgentID, Role: seat.RoleName, WorkspaceID: seat.WorkspaceID, Status: Idle,
		CreatedEntities: []string{}, ErrorLog: []string{}, CreatedAt: seconds(tx.Now()), LastActive: seconds(tx.Now()), CreatedBy: tx.By.Name,
	}
	err := c.kinds.agent.Keep(tx, record.Event{
		Type: "cad.agent.created", Detail: map[string]string{"role": seat.RoleName, "workspace_id": seat.WorkspaceID},
	}, &made)
	return made, cmp.Or(err, c.recordAgent(tx, &made))
}

// taken reports whether somebody who is no CAD agent has a name.
func (c *roster) taken(tenant, id string) bool {
	return c.opt.Taken != nil && c.opt.Taken(tenant, id)
}

func isTaken(field, value, why string) error {
	return core.Errorf(core.Conflict, "%s %s: %s", field, value, why).With("field", field).With("value", value)
}

// ShutdownAgent terminates an agent for good (controller operation
// shutdown_agent). An operation that is under way is not stored any more. What
// it made stays.
func (c *roster) ShutdownAgent(ctx context.Context, by core.Caller, id string) (Agent, error) {
	if _, err := c.member(ctx, by, id); err != nil {
		return Agent{}, err
	}
	var out Agent
	err := c.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		a, err := c.kinds.agent.Need(tx, id)
		if err != nil {
			return err
		}
		if err := a.to(Terminated); err != nil {
			return err
		}
		a.TerminatedAt, a.Waiting = seconds(tx.Now()), ""
		if err := c.voidIn(tx, id, "the agent was shut down"); err != nil {
			return err
		}
		out = *a
		return cmp.Or(c.kinds.agent.Keep(tx, record.Event{Type: "cad.agent.terminated"}, &out), c.recordAgent(tx, &out))
	})
	return out, audit.Explain("shut agent "+id+" down", err)
}

// Agent returns one agent.
func (c *roster) Agent(ctx context.Context, tenant, id string) (Agent, error) {
	m, err := c.member(ctx, reader(tenant), id)
	if err != nil {
		return Agent{}, err
	}
	return *m.shown(), nil
}

// Agents lists agents, newest first (controller operation list_agents). Status
// is one of Statuses, Kind a role, Agent an id; Since and Until are of its
// creation; Match looks into id, role, workspace and errors.
func (c *roster) Agents(_ context.Context, tenant string, f core.Filter) (core.Page[Agent], error) {
	f, err := f.Check()
	if err = cmp.Or(err, oneOf("status", f.Status, Statuses())); err != nil {
		return core.Page[Agent]{}, err
	}
	var all []Agent
	for _, m := range c.members(tenant) {
		if a := m.shown(); a.fits(f) {
			all = append(all, *a)
		}
	}
	core.Sort(all, func(a, b Agent) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return core.PageOf(all, f), nil
}

func (a *Agent) fits(f core.Filter) bool {
	at := a.CreatedAt.Time()
	return core.Wants(f.Status, string(a.Status)) && core.Wants(f.Kind, a.Role) && core.Wants(f.Agent, a.AgentID) && core.Wants(f.Task, a.TaskID) &&
		f.Session == "" && f.Trace == "" && f.Within(at) &&
		f.Finds(append(slices.Clone(a.ErrorLog), a.AgentID, a.Role, a.WorkspaceID, core.Named(a.Shown()))...)
}
