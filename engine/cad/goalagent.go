package cad

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// agentPatience is how long an agent may take to decompose a goal.
const agentPatience = 10 * time.Minute

// planTries is how often an agent may answer: one that is wrong is sent back with
// all that is wrong.
const planTries = 3

// planBy has an agent of the fleet decompose a goal. Its answer is checked like a
// scenario file, every method, reference and role, and every operation against
// the parameters of its method, before anything runs.
func (c *Controller) planBy(ctx context.Context, by core.Caller, d Decompose, roles roleFinder) (Scenario, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	message := c.goalPrompt(by.Tenant, d.Goal)
	for try := 1; ; try++ {
		answer, err := c.ask(ctx, by, d.Agent, message, swarm.Dispatch{Session: d.Session, Intent: "decompose a goal into CAD tasks"})
		if err != nil {
			return Scenario{}, err
		}
		if open := missingIn(answer); len(open) > 0 {
			return Scenario{}, core.Errorf(core.InvalidInput, "goal: agent %s says it is ambiguous; missing: %s", d.Agent, strings.Join(open, "; ")).
				With("field", "goal").With("value", d.Goal).With("missing", open)
		}
		s, err := parseScenario("answer.json", answer, roles)
		if err = errors.Join(err, c.checkParameters(&s).err()); err == nil {
			return s, nil
		}
		if try == planTries {
			return Scenario{}, core.Errorf(core.InvalidInput, "the answer of agent %s can't be used, after %d tries:\n%s", d.Agent, try, err).With("field", "agent").With("value", d.Agent)
		}
		message = c.goalPrompt(by.Tenant, d.Goal) + "\nYour last answer can't be used:\n" + core.ClipTo(err.Error(), maxWrong) + "\n"
	}
}

// maxWrong bounds in bytes what an agent is told of its mistakes.
const maxWrong = 16 << 10

// checkParameters holds every operation of a plan against what its method takes.
func (c *Controller) checkParameters(s *Scenario) (wrong problems) {
	if c.opt.Parameters == nil {
		return nil
	}
	for i := range s.Tasks {
		for _, list := range []struct {
			name  string
			steps []Step
		}{{"operations", s.Tasks[i].Operations}, {"rework_operations", s.Tasks[i].ReworkOperations}} {
			for n, step := range list.steps {
				at := fmt.Sprintf("task_sequence[%d].%s[%d]", i, list.name, n)
				if hasMember(step.Params, "agent_id") && step.Method != "agent.metrics" {
					wrong.refuse(at+".params.agent_id", "agent_id is the task's own agent; leave it out")
				}
				if _, known := FindMethod(step.Method); !known {
					continue // said already
				}
				for _, err := range c.opt.Parameters.Check(step.Method, step.Params) {
					wrong.note(at+".params", fmt.Errorf("%s: %w", step.Method, err))
				}
			}
		}
	}
	return wrong
}

// missingIn is what an answer says that a goal leaves open.
func missingIn(answer core.Raw) []string {
	var a struct {
		Missing []string `json:"missing"`
	}
	if core.DecodeStored(answer, &a) != nil {
		return nil
	}
	for i, text := range a.Missing {
		words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
		a.Missing[i] = core.ClipTo(strings.Join(words, " "), 200)
	}
	return a.Missing[:min(len(a.Missing), 20)]
}

// goalPrompt asks for a plan in the form of a scenario file.
func (c *Controller) goalPrompt(tenant, goal string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Plan how a team of CAD agents makes this: %s\n\n", goal)
	b.WriteString(`Answer with one JSON object and nothing else:
{"scenario_name":"a_name","description":"…","workflow_pattern":"mixed","success_criteria":"…",
 "agent_assignments":[{"agent_id":"a","role_name":"modeler","workspace_id":"ws_a"}],
 "task_sequence":[{"task_id":"t1","agent_id":"a","description":"…","dependencies":[],"success_criteria":"…",
   "check":"size(solids) == 1","operations":[{"id":"op1","method":"entity.create_line","params":{"start":[0,0,0],"end":[10,0,0]}}]}]}
Each agent has a workspace of its own, other than main. Lengths are millimetres. Params may hold ${op1.entity_id} for what an
earlier operation of the task answered, ${tasks.t1.workspace_id} for where a task among the dependencies built, and
${agent.workspace_id}. An operation's entity_id names what it makes.
check is CEL over solids, entities, volume (mm³), conflicts, interferences, files and results.
If the goal leaves open what has to be known, answer {"missing":["…"]} instead.
Roles and the only methods that they may use:
`)
	var methods []string
	for _, r := range c.Roles(tenant) {
		fmt.Fprintf(&b, "- %s: %s\n", r.Name, strings.Join(r.AllowedOperations, ", "))
		methods = append(methods, r.AllowedOperations...)
	}
	if c.opt.Parameters == nil {
		return b.String()
	}
	b.WriteString("What the methods take beside workspace_id and deadline_ms; * must be given, angles are radians:\n")
	slices.Sort(methods)
	for _, m := range slices.Compact(methods) {
		if takes := c.opt.Parameters.Takes(m); takes != "" {
			fmt.Fprintf(&b, "- %s: %s\n", m, takes)
		}
	}
	return b.String()
}
