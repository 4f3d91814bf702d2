package cad

import (
	"fmt"
	"slices"

	"swarmdeck/engine/core"
)

// applyPattern checks that the dependencies are those of the workflow_pattern
// and fills in what it adds.
func (s *Scenario) applyPattern() (flaws []flaw) {
	switch s.Pattern {
	case Mixed:
	case Sequential:
		for i := range s.Tasks {
			t := &s.Tasks[i]
			for n, id := range t.Dependencies {
				if at := slices.IndexFunc(s.Tasks, func(o PlannedTask) bool { return o.TaskID == id }); at >= i {
					flaws = append(flaws, bad(fmt.Sprintf("task_sequence[%d].dependencies[%d]", i, n), id, "a task before this one: the workflow_pattern is sequential"))
				}
			}
			if i > 0 && !slices.Contains(t.Dependencies, s.Tasks[i-1].TaskID) {
				t.Dependencies = append(slices.Clone(t.Dependencies), s.Tasks[i-1].TaskID)
			}
			if at := slices.IndexFunc(s.Tasks, func(o PlannedTask) bool { return o.TaskID == t.Rework }); at >= i {
				flaws = append(flaws, bad(fmt.Sprintf("task_sequence[%d].rework", i), t.Rework, "a task before this one: the workflow_pattern is sequential"))
			} else if at >= 0 && !slices.Contains(t.Dependencies, t.Rework) {
				t.Dependencies = append(slices.Clone(t.Dependencies), t.Rework)
			}
		}
	case Parallel:
		busy := map[string]string{}
		for i, t := range s.Tasks {
			last := i == len(s.Tasks)-1 && i > 0
			field := fmt.Sprintf("task_sequence[%d]", i)
			switch first := busy[t.AgentID]; {
			case len(t.Dependencies) == 0 && first != "":
				flaws = append(flaws, bad(field+".agent_id", t.AgentID, "an agent that has no other task: "+first+" runs at the same time"))
			case len(t.Dependencies) > 0 && (!last || len(t.Dependencies) != i):
				flaws = append(flaws, flaw{field + ".dependencies", core.Errorf(core.InvalidInput,
					"%s.dependencies: in a parallel scenario only the last task may wait, and for all others; workflow_pattern mixed allows any", field).With("field", field+".dependencies")})
			}
			busy[t.AgentID] = t.TaskID
		}
	default:
		flaws = append(flaws, bad("workflow_pattern", string(s.Pattern), "parallel, sequential, mixed"))
	}
	return flaws
}

// cycle is a way from a task back to itself, its first stands at the end again;
// nil when there is none.
func (s *Scenario) cycle() []string {
	const underWay, finished = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(id string) []string
	visit = func(id string) []string {
		switch state[id] {
		case finished:
			return nil
		case underWay:
			return append(slices.Clone(path[slices.Index(path, id):]), id)
		}
		t := s.task(id)
		if t == nil {
			return nil
		}
		state[id] = underWay
		path = append(path, id)
		for _, dep := range t.Dependencies {
			if found := visit(dep); found != nil {
				return found
			}
		}
		path = path[:len(path)-1]
		state[id] = finished
		return nil
	}
	for _, t := range s.Tasks {
		if found := visit(t.TaskID); found != nil {
			return found
		}
	}
	return nil
}

// before are the tasks that are completed when one begins: its dependencies and
// theirs.
func (s *Scenario) before(id string) []string {
	var all []string
	next := []string{id}
	for len(next) > 0 {
		t := s.task(next[0])
		next = next[1:]
		if t == nil {
			continue
		}
		for _, dep := range t.Dependencies {
			if !slices.Contains(all, dep) {
				all, next = append(all, dep), append(next, dep)
			}
		}
	}
	return all
}
