package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Pattern is how the tasks of a scenario follow each other (seed 5,
// workflow_pattern).
type Pattern string

// The patterns.
const (
	// Parallel tasks of different agents all begin at once. Only the last may
	// wait, for all others: it brings together what they made.
	Parallel Pattern = "parallel"
	// Sequential tasks run in their order, each after the one before.
	Sequential Pattern = "sequential"
	// Mixed tasks wait for their dependencies alone.
	Mixed Pattern = "mixed"
)

// Seat is one agent of a scenario: who it is, what it may do and where it
// builds.
type Seat struct {
	AgentID     string `json:"agent_id"`
	RoleName    string `json:"role_name"`
	WorkspaceID string `json:"workspace_id"`
}

// PlannedTask is one task of a scenario.
type PlannedTask struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"`
	Brief
}

// Scenario is a workflow that can be run again and again (seed 5,
// CollaborativeScenario). A value is never modified.
type Scenario struct {
	Name        string        `json:"scenario_name"`
	Description string        `json:"description"`
	Agents      []Seat        `json:"agent_assignments"`
	Pattern     Pattern       `json:"workflow_pattern"`
	Tasks       []PlannedTask `json:"task_sequence"`
	// SuccessCriteria says in prose when it has come out well; the checks of its
	// tasks are what decides.
	SuccessCriteria string `json:"success_criteria"`
	// EstimatedDuration is in seconds; 0 when nobody knows.
	EstimatedDuration float64 `json:"estimated_duration"`

	Builtin  bool   `json:"builtin"`
	AuditSeq uint64 `json:"audit_seq,omitzero"`
}

// Bounds of a scenario.
const (
	maxScenario     = 512 << 10 // bytes of a file
	maxSeats        = 50
	maxPlanned      = 200
	maxSteps        = 1000
	maxText         = 1000 // characters of a description or criteria
	maxCheck        = 4096
	maxRounds       = 10
	defaultRounds   = 2
	longestScenario = 7 * 24 * 3600.0 // s
)

const planName = "1-64 of A-Z a-z 0-9 _ . -, a letter or _ first"

// flaw is what is wrong with a part of a scenario; field is its place, such as
// task_sequence[2].check.
type flaw struct {
	field string
	err   error
}

func bad(field string, value any, allowed string) flaw {
	return flaw{field, core.Invalid(field, value, allowed)}
}

// checkFlaws is the error of all flaws, nil for none.
func checkFlaws(flaws []flaw) error {
	if len(flaws) == 0 {
		return nil
	}
	lines := make([]string, len(flaws))
	for i, f := range flaws {
		if lines[i] = f.err.Error(); !strings.HasPrefix(lines[i], f.field) {
			lines[i] = f.field + ": " + lines[i]
		}
	}
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "\n")).With("field", flaws[0].field)
}

// roleFinder gives a role by its name, nil when there is none.
type roleFinder func(name string) *RoleTemplate

// check lists everything that is wrong with a scenario (seed 5, Validation
// Rules), and returns it with its methods spelt the one way and its pattern's
// dependencies filled in.
func (s Scenario) check(role roleFinder) (Scenario, []flaw) {
	var flaws []flaw
	add := func(f ...flaw) { flaws = append(flaws, f...) }
	if !rolePattern().MatchString(s.Name) {
		add(bad("scenario_name", s.Name, planName))
	}
	if err := checkText("description", s.Description, maxText); err != nil {
		add(flaw{"description", err})
	}
	if err := checkText("success_criteria", s.SuccessCriteria, maxText); err != nil {
		add(flaw{"success_criteria", err})
	}
	if !(s.EstimatedDuration >= 0 && s.EstimatedDuration <= longestScenario) {
		add(bad("estimated_duration", s.EstimatedDuration, "seconds, 0-604800"))
	}
	if len(s.Agents) == 0 || len(s.Agents) > maxSeats {
		add(bad("agent_assignments", len(s.Agents), fmt.Sprintf("1-%d agents", maxSeats)))
	}
	add(s.checkSeats(role)...)
	if len(s.Tasks) == 0 || len(s.Tasks) > maxPlanned {
		add(bad("task_sequence", len(s.Tasks), fmt.Sprintf("1-%d tasks", maxPlanned)))
	}
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		add(s.checkTask(i, role)...)
	}
	add(s.applyPattern()...)
	if len(flaws) == 0 { // references follow dependencies, which must be sound
		if path := s.cycle(); path != nil {
			at := slices.IndexFunc(s.Tasks, func(t PlannedTask) bool { return t.TaskID == path[0] })
			field := fmt.Sprintf("task_sequence[%d].dependencies", at)
			return s, append(flaws, flaw{field, core.Errorf(core.InvalidInput, "a cycle: %s", strings.Join(path, " → ")).With("field", field)})
		}
		for i := range s.Tasks {
			add(s.checkReferences(i)...)
		}
	}
	return s, flaws
}

func (s *Scenario) checkSeats(role roleFinder) (flaws []flaw) {
	agents, places := map[string]bool{}, map[string]bool{}
	for i, a := range s.Agents {
		at := fmt.Sprintf("agent_assignments[%d].", i)
		if err := checkAgentID(at+"agent_id", a.AgentID); err != nil {
			flaws = append(flaws, flaw{at + "agent_id", err})
		} else if agents[a.AgentID] {
			flaws = append(flaws, bad(at+"agent_id", a.AgentID, "each agent once"))
		}
		if role(a.RoleName) == nil {
			flaws = append(flaws, bad(at+"role_name", a.RoleName, "a role, as cad roles lists them"))
		}
		if err := model.CheckWorkspaceID(a.WorkspaceID); err != nil || a.WorkspaceID == Main {
			flaws = append(flaws, bad(at+"workspace_id", a.WorkspaceID, "1-40 of A-Z a-z 0-9 _ . -, a letter or _ first, and not "+Main+", which belongs to nobody"))
		} else if places[a.WorkspaceID] {
			flaws = append(flaws, bad(at+"workspace_id", a.WorkspaceID, "a workspace of its own for each agent"))
		}
		agents[a.AgentID], places[a.WorkspaceID] = true, true
	}
	return flaws
}

func (s *Scenario) seat(agent string) *Seat {
	i := slices.IndexFunc(s.Agents, func(a Seat) bool { return a.AgentID == agent })
	if i < 0 {
		return nil
	}
	return &s.Agents[i]
}

func (s *Scenario) task(id string) *PlannedTask {
	i := slices.IndexFunc(s.Tasks, func(t PlannedTask) bool { return t.TaskID == id })
	if i < 0 {
		return nil
	}
	return &s.Tasks[i]
}

// checkTask looks at one task, and spells its methods.
func (s *Scenario) checkTask(i int, role roleFinder) (flaws []flaw) {
	t := &s.Tasks[i]
	at := fmt.Sprintf("task_sequence[%d].", i)
	add := func(f ...flaw) { flaws = append(flaws, f...) }
	if !rolePattern().MatchString(t.TaskID) {
		add(bad(at+"task_id", t.TaskID, planName))
	} else if first := s.task(t.TaskID); first != t {
		add(bad(at+"task_id", t.TaskID, "a different id for each task"))
	}
	seat := s.seat(t.AgentID)
	if seat == nil {
		add(bad(at+"agent_id", t.AgentID, "an agent of agent_assignments"))
	}
	seen := map[string]bool{}
	for n, id := range t.Dependencies {
		field := fmt.Sprintf("%sdependencies[%d]", at, n)
		switch {
		case s.task(id) == nil:
			add(bad(field, id, "a task of task_sequence"))
		case id == t.TaskID:
			add(bad(field, id, "another task than itself"))
		case seen[id]:
			add(bad(field, id, "each task once"))
		}
		seen[id] = true
	}
	brief, more := t.Brief.check(at)
	t.Brief = brief
	add(more...)
	if t.Rework != "" {
		switch {
		case s.task(t.Rework) == nil || !slices.Contains(t.Dependencies, t.Rework) && s.Pattern != Sequential:
			add(bad(at+"rework", t.Rework, "one of the task's dependencies"))
		case len(s.task(t.Rework).ReworkOperations) == 0 && len(s.task(t.Rework).Operations) > 0:
			add(flaw{at + "rework", core.Errorf(core.InvalidInput, "task %s has no rework_operations: it would only do the same again", t.Rework).With("field", at+"rework")})
		}
	}
	if seat != nil && len(more) == 0 {
		if r := role(seat.RoleName); r != nil {
			if err := t.fits(t.TaskID, r); err != nil {
				add(flaw{at + "required_operations", err})
			}
		}
	}
	return flaws
}
