package cad

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
)

// agentPatience is how long an agent may take to decompose a goal.
const agentPatience = 10 * time.Minute

// planBy has an agent of the fleet decompose a goal. Its answer is checked like a
// scenario file: every method, reference and role. One that is wrong is sent
// back once with all that is wrong.
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
		if err == nil {
			return s, nil
		}
		if try == 2 {
			return Scenario{}, core.Errorf(core.InvalidInput, "the answer of agent %s can't be used:\n%s", d.Agent, err).With("field", "agent").With("value", d.Agent)
		}
		message = c.goalPrompt(by.Tenant, d.Goal) + "\nYour last answer can't be used:\n" + err.Error() + "\n"
	}
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
		a.Missing[i] = clip(strings.Join(words, " "), 200)
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
${agent.workspace_id}. solid.extrude takes entity_ids of lines and circles that close loops in one plane, and distance.
check is CEL over solids, entities, volume (mm³), conflicts, interferences, files and results.
If the goal leaves open what has to be known, answer {"missing":["…"]} instead.
Roles and the only methods that they may use:
`)
	for _, r := range c.Roles(tenant) {
		fmt.Fprintf(&b, "- %s: %s\n", r.Name, strings.Join(r.AllowedOperations, ", "))
	}
	return b.String()
}
