package cad

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/mapping"
)

// Roots of references that are no operation's id.
const (
	rootTasks  = "tasks"
	rootRework = "rework"
	rootAgent  = "agent" // agent_id and workspace_id of the agent that works
)

// What ${tasks.TASK.…} names beside the operations of a task.
const (
	refWorkspace = "workspace_id"
	refAgent     = "agent_id"
)

// check lists what is wrong with a brief, as far as it can be seen alone, and
// returns it with its methods spelt the one way. at is put before the fields.
func (b Brief) check(at string) (Brief, []flaw) {
	var flaws []flaw
	add := func(f ...flaw) { flaws = append(flaws, f...) }
	if err := checkText(at+"description", b.Description, maxText); err != nil {
		add(flaw{at + "description", err})
	}
	if b.SuccessCriteria != "" {
		if err := checkText(at+"success_criteria", b.SuccessCriteria, maxText); err != nil {
			add(flaw{at + "success_criteria", err})
		}
	}
	b.RequiredOperations = slices.Clone(b.RequiredOperations)
	for i, op := range b.RequiredOperations {
		m, ok := FindMethod(op)
		if !ok {
			add(bad(fmt.Sprintf("%srequired_operations[%d]", at, i), op, "a method: "+listed(MethodNames())))
		}
		b.RequiredOperations[i] = m.Name
	}
	var more []flaw
	b.Operations, more = checkSteps(at+"operations", b.Operations)
	add(more...)
	b.ReworkOperations, more = checkSteps(at+"rework_operations", b.ReworkOperations)
	add(more...)
	if b.Check != "" {
		if err := checkCheck(at+"check", b.Check); err != nil {
			add(flaw{at + "check", err})
		}
	}
	if b.MaxRounds < 0 || b.MaxRounds > maxRounds {
		add(bad(at+"max_rounds", b.MaxRounds, fmt.Sprintf("1-%d", maxRounds)))
	}
	switch {
	case b.Worker != "" && len(b.Operations) > 0:
		add(bad(at+"worker", b.Worker, "a worker only for a task without operations"))
	case b.Worker == "" && len(b.Operations) == 0:
		add(flaw{at + "operations", core.Errorf(core.InvalidInput, "%soperations: none, and no worker: give the operations, or name in worker the agent of the fleet that does the task", at).With("field", at+"operations")})
	}
	if b.MaxRounds > 0 && b.Rework == "" {
		add(bad(at+"max_rounds", b.MaxRounds, "rounds only with rework"))
	}
	if b.Rework != "" && b.Check == "" {
		add(flaw{at + "rework", core.Errorf(core.InvalidInput, "%srework: without a check nothing is ever rejected", at).With("field", at+"rework")})
	}
	return b, flaws
}

// checkSteps looks at operations one by one. An operation of a rework may have
// the id of an earlier one: its answer takes the place of that one's.
func checkSteps(field string, steps []Step) (out []Step, flaws []flaw) {
	ids := map[string]bool{}
	if len(steps) > maxSteps {
		return steps, []flaw{bad(field, len(steps), fmt.Sprintf("at most %d operations", maxSteps))}
	}
	out = slices.Clone(steps)
	for i := range out {
		s := &out[i]
		at := fmt.Sprintf("%s[%d].", field, i)
		if s.ID != "" {
			switch word, rest := mapping.Word(s.ID); {
			case word == "" || rest != "" || len(s.ID) > 50 || slices.Contains([]string{rootTasks, rootRework, rootAgent, refWorkspace, refAgent}, s.ID):
				flaws = append(flaws, bad(at+"id", s.ID, "1-50 letters, digits, - and _, and none of tasks, rework, agent, workspace_id, agent_id"))
			case ids[s.ID]:
				flaws = append(flaws, bad(at+"id", s.ID, "a different id for each operation"))
			}
			ids[s.ID] = true
		}
		m, ok := FindMethod(s.Method)
		if !ok {
			flaws = append(flaws, bad(at+"method", s.Method, "a method: "+listed(MethodNames())))
		}
		s.Method = m.Name
		if len(s.Params) == 0 {
			s.Params = core.Raw(`{}`)
		}
		if err := core.CheckObject(at+"params", s.Params, core.MaxInput); err != nil {
			flaws = append(flaws, flaw{at + "params", err})
		}
	}
	return out, flaws
}

// checkReferences looks at what the operations of a task refer to.
func (s *Scenario) checkReferences(i int) []flaw {
	t := &s.Tasks[i]
	field := fmt.Sprintf("task_sequence[%d].", i)
	in := references{before: s.before(t.TaskID), of: func(id string) []Step {
		o := s.task(id)
		return slices.Concat(o.Operations, o.ReworkOperations)
	}}
	flaws := in.check(field+"operations", t.Operations)
	in.rework = true
	return append(flaws, in.check(field+"rework_operations", t.ReworkOperations)...)
}

// references is what the operations of a task may refer to.
type references struct {
	before  []string // tasks that are completed by then
	of      func(task string) []Step
	earlier []string // ids of operations before
	rework  bool     // what a review found is known
}

func (r *references) check(field string, steps []Step) (flaws []flaw) {
	for i, s := range steps {
		for _, u := range mapping.Uses(s.Params, fmt.Sprintf("%s[%d].params", field, i)) {
			why := u.Err
			if why == nil {
				why = r.why(u.Ref)
			}
			if why != nil {
				flaws = append(flaws, flaw{u.Field, mapping.InField(u.Field, why)})
			}
		}
		if s.ID != "" {
			r.earlier = append(r.earlier, s.ID)
		}
	}
	return flaws
}

// why says why a reference leads nowhere, nil when it may lead somewhere.
func (r *references) why(ref *mapping.Reference) error {
	fail := func(format string, args ...any) error {
		return core.Errorf(core.InvalidInput, "%s: %s", ref.Text, fmt.Sprintf(format, args...))
	}
	switch {
	case ref.Root == rootRework && r.rework, ref.Root == rootAgent, slices.Contains(r.earlier, ref.Root):
		return nil
	case ref.Root == rootRework:
		return fail("only rework_operations know what a review found")
	case ref.Root != rootTasks && len(r.earlier) == 0:
		return fail("no operation with an id comes before this one")
	case ref.Root != rootTasks:
		return fail("there is no earlier operation %s; there are %s", ref.Root, strings.Join(mapping.SomeNames(r.earlier), ", "))
	case len(ref.Path) < 2 || ref.Path[0].Key == "" || ref.Path[1].Key == "":
		return fail("write ${tasks.TASK.OPERATION.field} or ${tasks.TASK.workspace_id}")
	}
	task, op := ref.Path[0].Key, ref.Path[1].Key
	if !slices.Contains(r.before, task) {
		return fail("%s is not among the dependencies: %s", task, strings.Join(mapping.SomeNames(r.before), ", "))
	}
	if op == refWorkspace || op == refAgent || slices.ContainsFunc(r.of(task), func(s Step) bool { return s.ID == op }) {
		return nil
	}
	return fail("task %s has no operation with the id %s", task, op)
}
