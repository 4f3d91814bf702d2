package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/cad/model"
	"swarmdeck/engine/core"
)

// Pattern is how the tasks of a scenario follow each other (model 5,
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
	AgentID     string `json:"agent_id" file:"word needed"`
	RoleName    string `json:"role_name" file:"word needed"`
	WorkspaceID string `json:"workspace_id" file:"word needed"`
}

// PlannedTask is one task of a scenario.
type PlannedTask struct {
	TaskID  string `json:"task_id" file:"word needed"`
	AgentID string `json:"agent_id" file:"word needed"`
	Brief
}

// Scenario is a workflow that can be run again and again (model 5,
// CollaborativeScenario). A value is never modified.
type Scenario struct {
	Name        string        `json:"scenario_name" file:"word needed"`
	Description string        `json:"description" file:"prose needed"`
	Agents      []Seat        `json:"agent_assignments" file:"needed"`
	Pattern     Pattern       `json:"workflow_pattern" file:"word needed"`
	Tasks       []PlannedTask `json:"task_sequence" file:"needed"`
	// SuccessCriteria says in prose when it has come out well; the checks of its
	// tasks are what decides.
	SuccessCriteria string `json:"success_criteria" file:"prose needed"`
	// EstimatedDuration is in seconds; 0 when nobody knows.
	EstimatedDuration float64 `json:"estimated_duration" file:""`

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

// problem is what is wrong with a part of a scenario; field is its place, such as
// task_sequence[2].check.
type problem struct {
	field string
	err   error
}

type problems []problem

// note takes an error in, nil is none.
func (l *problems) note(field string, err error) {
	if err != nil {
		*l = append(*l, problem{field, err})
	}
}

// want takes a value in that is not right.
func (l *problems) want(right bool, field string, value any, allowed string) {
	if !right {
		l.note(field, core.Invalid(field, value, allowed))
	}
}

// refuse takes in what no single value is wrong with.
func (l *problems) refuse(field, format string, args ...any) {
	l.note(field, core.Errorf(core.InvalidInput, format, args...).With("field", field))
}

// method spells a method the one way, "" for what is none.
func (l *problems) method(field, name string) string {
	m, ok := FindMethod(name)
	if !ok {
		l.note(field, core.Invalid(field, name, "a method: "+listed(MethodNames())))
	}
	return m.Name
}

// err is the error of all problems, nil for none.
func (l problems) err() error {
	if len(l) == 0 {
		return nil
	}
	lines := make([]string, len(l))
	for i, f := range l {
		if lines[i] = f.err.Error(); !strings.HasPrefix(lines[i], f.field) {
			lines[i] = f.field + ": " + lines[i]
		}
	}
	return core.Errorf(core.InvalidInput, "%s", strings.Join(lines, "\n")).With("field", l[0].field)
}

// check lists everything that is wrong with a scenario (model 5, Validation
// Rules), and returns it with its methods spelt the one way and its pattern's
// dependencies filled in.
func (s Scenario) check(role roleFinder) (_ Scenario, f problems) {
	f.want(namePattern().MatchString(s.Name), "scenario_name", s.Name, planName)
	f.note("description", checkText("description", s.Description, maxText))
	f.note("success_criteria", checkText("success_criteria", s.SuccessCriteria, maxText))
	f.want(s.EstimatedDuration >= 0 && s.EstimatedDuration <= longestScenario, "estimated_duration", s.EstimatedDuration, "seconds, 0-604800")
	f.want(len(s.Agents) > 0 && len(s.Agents) <= maxSeats, "agent_assignments", len(s.Agents), fmt.Sprintf("1-%d agents", maxSeats))
	s.checkSeats(role, &f)
	f.want(len(s.Tasks) > 0 && len(s.Tasks) <= maxPlanned, "task_sequence", len(s.Tasks), fmt.Sprintf("1-%d tasks", maxPlanned))
	s.Tasks = slices.Clone(s.Tasks)
	for i := range s.Tasks {
		s.checkTask(i, role, &f)
	}
	s.applyPattern(&f)
	if len(f) > 0 { // references follow dependencies, which must be sound
		return s, f
	}
	if path := s.cycle(); path != nil {
		at := slices.IndexFunc(s.Tasks, func(t PlannedTask) bool { return t.TaskID == path[0] })
		f.refuse(fmt.Sprintf("task_sequence[%d].dependencies", at), "a cycle: %s", strings.Join(path, " → "))
		return s, f
	}
	for i := range s.Tasks {
		s.checkReferences(i, &f)
	}
	return s, f
}

func (s *Scenario) checkSeats(role roleFinder, f *problems) {
	agents, places := map[string]bool{}, map[string]bool{}
	for i, a := range s.Agents {
		at := fmt.Sprintf("agent_assignments[%d].", i)
		f.note(at+"agent_id", checkAgentID(at+"agent_id", a.AgentID))
		f.want(!agents[a.AgentID], at+"agent_id", a.AgentID, "each agent once")
		f.want(role(a.RoleName) != nil, at+"role_name", a.RoleName, "a role, as cad roles lists them")
		f.want(model.CheckWorkspaceID(a.WorkspaceID) == nil && a.WorkspaceID != Main, at+"workspace_id", a.WorkspaceID,
			"1-40 of A-Z a-z 0-9 _ . -, a letter or _ first, and not "+Main+", which belongs to nobody")
		f.want(!places[a.WorkspaceID], at+"workspace_id", a.WorkspaceID, "a workspace of its own for each agent")
		agents[a.AgentID], places[a.WorkspaceID] = true, true
	}
}

func (s *Scenario) seat(agent string) *Seat {
	return first(s.Agents, func(a *Seat) bool { return a.AgentID == agent })
}

func (s *Scenario) task(id string) *PlannedTask {
	return first(s.Tasks, func(t *PlannedTask) bool { return t.TaskID == id })
}

// first is the first of a list for which is holds, nil when there is none.
func first[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// checkTask looks at one task, and spells its methods.
func (s *Scenario) checkTask(i int, role roleFinder, f *problems) {
	t := &s.Tasks[i]
	at := fmt.Sprintf("task_sequence[%d].", i)
	f.want(namePattern().MatchString(t.TaskID), at+"task_id", t.TaskID, planName)
	f.want(s.task(t.TaskID) == t, at+"task_id", t.TaskID, "a different id for each task")
	seat := s.seat(t.AgentID)
	f.want(seat != nil, at+"agent_id", t.AgentID, "an agent of agent_assignments")
	for n, id := range t.Dependencies {
		field := fmt.Sprintf("%sdependencies[%d]", at, n)
		f.want(s.task(id) != nil, field, id, "a task of task_sequence")
		f.want(id != t.TaskID, field, id, "another task than itself")
		f.want(slices.Index(t.Dependencies, id) == n, field, id, "each task once")
	}
	before := len(*f)
	t.Brief = t.Brief.check(at, f)
	sound := len(*f) == before
	if t.Rework != "" {
		switch work := s.task(t.Rework); {
		case work == nil || !slices.Contains(t.Dependencies, t.Rework) && s.Pattern != Sequential:
			f.want(false, at+"rework", t.Rework, "one of the task's dependencies")
		case len(work.ReworkOperations) == 0 && len(work.Operations) > 0:
			f.refuse(at+"rework", "task %s has no rework_operations: it would only do the same again", t.Rework)
		}
	}
	if seat != nil && sound {
		if r := role(seat.RoleName); r != nil {
			f.note(at+"required_operations", t.fits(t.TaskID, r))
		}
	}
}

// applyPattern checks that the dependencies are those of the workflow_pattern
// and fills in what it adds.
func (s *Scenario) applyPattern(f *problems) {
	switch s.Pattern {
	case Mixed:
	case Sequential:
		for i := range s.Tasks {
			t := &s.Tasks[i]
			at := func(id string) int {
				return slices.IndexFunc(s.Tasks, func(o PlannedTask) bool { return o.TaskID == id })
			}
			const earlier = "a task before this one: the workflow_pattern is sequential"
			for n, id := range t.Dependencies {
				f.want(at(id) < i, fmt.Sprintf("task_sequence[%d].dependencies[%d]", i, n), id, earlier)
			}
			f.want(at(t.Rework) < i, fmt.Sprintf("task_sequence[%d].rework", i), t.Rework, earlier)
			for _, n := range []int{i - 1, at(t.Rework)} {
				if n >= 0 && n < i && !slices.Contains(t.Dependencies, s.Tasks[n].TaskID) {
					t.Dependencies = append(slices.Clone(t.Dependencies), s.Tasks[n].TaskID)
				}
			}
		}
	case Parallel:
		busy := map[string]string{}
		for i, t := range s.Tasks {
			last := i == len(s.Tasks)-1 && i > 0
			field := fmt.Sprintf("task_sequence[%d]", i)
			switch first := busy[t.AgentID]; {
			case len(t.Dependencies) == 0 && first != "":
				f.want(false, field+".agent_id", t.AgentID, "an agent that has no other task: "+first+" runs at the same time")
			case len(t.Dependencies) > 0 && (!last || len(t.Dependencies) != i):
				f.refuse(field+".dependencies",
					"%s.dependencies: in a parallel scenario only the last task may wait, and for all others; workflow_pattern mixed allows any", field)
			}
			busy[t.AgentID] = t.TaskID
		}
	default:
		f.want(false, "workflow_pattern", string(s.Pattern), "parallel, sequential, mixed")
	}
}

// cycle is a way from a task back to itself, its first stands at the end again;
// nil when there is none.
func (s *Scenario) cycle() []string {
	finished := map[string]bool{}
	var visit func(path []string) []string
	visit = func(path []string) []string {
		id := path[len(path)-1]
		if first := slices.Index(path, id); first < len(path)-1 {
			return path[first:]
		}
		if t := s.task(id); t != nil && !finished[id] {
			for _, dep := range t.Dependencies {
				if found := visit(append(slices.Clip(path), dep)); found != nil {
					return found
				}
			}
		}
		finished[id] = true
		return nil
	}
	for _, t := range s.Tasks {
		if found := visit([]string{t.TaskID}); found != nil {
			return found
		}
	}
	return nil
}

// before are the tasks that are completed when one begins: its dependencies and
// theirs.
func (s *Scenario) before(id string) (all []string) {
	for next := []string{id}; len(next) > 0; next = next[1:] {
		if t := s.task(next[0]); t != nil {
			for _, dep := range t.Dependencies {
				if !slices.Contains(all, dep) {
					all, next = append(all, dep), append(next, dep)
				}
			}
		}
	}
	return all
}
