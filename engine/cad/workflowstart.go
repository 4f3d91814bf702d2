package cad

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// StartWorkflow asks for a run of a scenario (controller operation
// execute_workflow).
type StartWorkflow struct {
	Scenario  string   // name
	Overrides []string // AGENT=ROLE
	Directory string   // absolute; where the files of its workspaces lie; "" is the default place
	Kernel    string   // of its workspaces; "" is the default
	Session   string   // that its tasks run in; "" for none
}

// RunScenario makes the agents and workspaces of a scenario and starts it. Ids
// that are taken by an earlier run get a number, all the same one: _2, _3 and so
// on.
func (c *Controller) RunScenario(ctx context.Context, by core.Caller, w StartWorkflow) (Workflow, error) {
	s, err := c.Scenario(by.Tenant, w.Scenario)
	if err != nil {
		return Workflow{}, err
	}
	if s, err = s.override(w.Overrides, finderOf(c.Roles(by.Tenant))); err != nil {
		return Workflow{}, err
	}
	return c.work.start(ctx, by, s, w, "")
}

// checkStart reports what is wrong with where a workflow is to run.
func (c *Controller) checkStart(ctx context.Context, by core.Caller, w StartWorkflow) error {
	if err := checkOut(w.Directory); err != nil {
		return err
	}
	if w.Session != "" {
		if _, err := c.opt.Swarm.Sessions.Get(ctx, by.Tenant, w.Session); err != nil {
			return err
		}
	}
	return c.checkKernel(w.Kernel)
}

// checkOut makes the directory of a workflow's files, so that one that can't be
// written to is refused before any work is done; "" is the default place.
func checkOut(dir string) error {
	if err := checkDirectory("out", dir); dir == "" || err != nil {
		return err
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		// Always the same name: what a kill leaves here goes with the next start.
		var probe *os.File
		if probe, err = os.OpenFile(filepath.Join(dir, ".swarmdeck-probe"), os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			err = probe.Close()
			if gone := os.Remove(probe.Name()); !errors.Is(gone, fs.ErrNotExist) { // two may start at once
				err = errors.Join(err, gone)
			}
		}
	}
	if err != nil {
		return core.Errorf(core.InvalidInput, "out: %v; allowed: a directory that files can be written to", err).With("field", "out").With("value", dir)
	}
	return nil
}

// maxRuns bounds the numbers that ids of a scenario are given.
const maxRuns = 10_000

// start makes a workflow with its agents and workspaces, all in one commit, and
// has the loop look at it. goal is that of a decomposed one.
func (s *workflows) start(ctx context.Context, by core.Caller, sc Scenario, w StartWorkflow, goal string) (Workflow, error) {
	if err := s.c.checkStart(ctx, by, w); err != nil {
		return Workflow{}, err
	}
	for n := 1; n <= maxRuns; n++ {
		seats := suffixed(sc.Agents, n)
		if s.c.anyTaken(by.Tenant, seats) {
			continue
		}
		spaces := make([]*begun, len(seats))
		for i, seat := range seats {
			space := CreateWorkspace{WorkspaceID: seat.WorkspaceID, AgentID: seat.AgentID, Kernel: w.Kernel, Directory: w.Directory}
			var err error
			if spaces[i], err = s.c.begin(ctx, by, space, "workspace.create", nil); err != nil {
				return Workflow{}, err
			}
		}
		var made Workflow
		err := s.c.ledger.Update(ctx, by, func(tx *audit.Tx) (err error) {
			made, err = s.startIn(tx, by, sc, seats, spaces, w, goal)
			return err
		})
		if errors.Is(err, errSeatTaken) {
			continue
		}
		if err != nil {
			return Workflow{}, audit.Explain("start scenario "+sc.Name, err)
		}
		return s.c.Workflow(ctx, by.Tenant, made.WorkflowID)
	}
	return Workflow{}, core.Errorf(core.Conflict, "scenario %s: its agents' ids are taken %d times over; shut agents down, or rename those of the scenario", sc.Name, maxRuns)
}

// errSeatTaken says that somebody took a name just before.
var errSeatTaken = errors.New("the name is taken")

// suffixed are the seats of the nth run.
func suffixed(seats []Seat, n int) []Seat {
	out := slices.Clone(seats)
	if n == 1 {
		return out
	}
	agents, places := map[string]bool{}, map[string]bool{}
	for i := range out {
		out[i].AgentID = nthID(out[i].AgentID, n, maxAgentID, agents)
		out[i].WorkspaceID = nthID(out[i].WorkspaceID, n, model.MaxWorkspace, places)
	}
	return out
}

// nthID is an id with a number. One that is too long with it is cut, and
// where that makes it the same as one that is used, it gets another number more.
func nthID(id string, n, limit int, used map[string]bool) string {
	suffix := fmt.Sprintf("_%d", n)
	for other := 2; ; other++ {
		name := id[:min(len(id), limit-len(suffix))] + suffix
		if !used[name] {
			used[name] = true
			return name
		}
		suffix = fmt.Sprintf("_%d_%d", other, n)
	}
}

func (c *Controller) anyTaken(name string, seats []Seat) (taken bool) {
	c.look(name, func(t *tenantState) {
		taken = slices.ContainsFunc(seats, func(s Seat) bool { return t.members[s.AgentID] != nil || t.spaces[s.WorkspaceID] != nil })
	})
	return taken || slices.ContainsFunc(seats, func(s Seat) bool { return c.taken(name, s.AgentID) })
}

// startIn writes a workflow and all that it needs.
func (s *workflows) startIn(tx *audit.Tx, by core.Caller, sc Scenario, seats []Seat, spaces []*begun, opt StartWorkflow, goal string) (Workflow, error) {
	w := s.newWorkflow(tx, by, sc, opt, goal)
	w.Agents = seats
	for i, seat := range seats {
		if err := s.c.seatIn(tx, seat, spaces[i]); err != nil {
			return w, err
		}
	}
	// After its agents: the loop looks at it as soon as they are known.
	if err := s.c.saveWorkflow(tx, &w, "cad.workflow.created", map[string]any{"scenario_name": sc.Name, "agents": seats}); err != nil {
		return w, err
	}
	all := w.assignments(sc, func(id string) Seat {
		return seats[slices.IndexFunc(sc.Agents, func(a Seat) bool { return a.AgentID == id })]
	})
	for _, a := range all {
		if err := s.c.addAssignment(tx, a, record.Event{Type: "cad.assignment.created"}); err != nil {
			return w, err
		}
	}
	if err := w.to(WorkflowRunning, seconds(tx.Now())); err != nil {
		return w, err
	}
	return w, s.settleIn(tx, &w, all, "cad.workflow.running", nil)
}

func (s *workflows) newWorkflow(tx *audit.Tx, by core.Caller, sc Scenario, opt StartWorkflow, goal string) Workflow {
	number := s.c.kinds.workflow.Next(tx)
	return Workflow{
		WorkflowID: core.NewID(core.WorkflowPrefix, by.Tenant, number), Number: number, TenantID: by.Tenant, ScenarioName: sc.Name,
		Pattern: sc.Pattern, Goal: goal, State: Initializing, Failures: []AgentFailure{}, Metrics: WorkflowMetrics{Tasks: len(sc.Tasks)},
		Directory: opt.Directory, Kernel: opt.Kernel, SessionID: opt.Session, TraceID: core.NewTrace(nil),
		CreatedAt: seconds(tx.Now()), CreatedBy: by.Name, ByKind: by.Kind,
	}
}

// assignments are a workflow's own of a scenario's tasks.
func (w *Workflow) assignments(sc Scenario, seat func(agent string) Seat) []*TaskAssignment {
	all := make([]*TaskAssignment, len(sc.Tasks))
	for i, t := range sc.Tasks {
		at := seat(t.AgentID)
		a := &TaskAssignment{
			TaskID: t.TaskID, AgentID: at.AgentID, Brief: t.Brief, Status: Pending, TenantID: w.TenantID, WorkflowID: w.WorkflowID,
			RoleName: at.RoleName, WorkspaceID: at.WorkspaceID, TraceID: w.TraceID, Index: i,
		}
		a.RequiredOperations = a.required()
		all[i] = a
	}
	return all
}

// seatIn makes one agent of a workflow, and its workspace; nil when that is there.
func (c *Controller) seatIn(tx *audit.Tx, seat Seat, space *begun) error {
	if was, err := c.kinds.agent.Load(tx, seat.AgentID); err != nil {
		return err
	} else if was != nil {
		return errSeatTaken
	}
	if space != nil {
		if there, err := c.kinds.workspace.Load(tx, seat.WorkspaceID); err != nil {
			return err
		} else if there != nil {
			return errSeatTaken
		}
		if err := c.beginIn(tx, space); err != nil {
			return err
		}
	}
	_, err := c.newAgent(tx, seat)
	return err
}
