package command

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func (t *tree) cadScenarios() *cobra.Command {
	return t.group("scenario", "Workflows of CAD agents that can be run again and again",
		t.command(spec{
			use: "list", short: "List the scenarios", effect: Reads,
			run: func(c *call, _ []string) error {
				all, err := c.eng.CAD.Scenarios(c.ctx, c.by.Tenant)
				if err != nil {
					return err
				}
				return list(c, core.Page[cad.Scenario]{Items: all}, scenarioColumns(c))
			},
		}),
		t.command(spec{
			use: "show NAME", short: "Show a scenario: its agents, tasks and operations", effect: Reads, args: []string{"cadscenario"},
			run: shows(func(c *call, name string) (cad.Scenario, error) { return c.eng.CAD.Scenario(c.by.Tenant, name) }),
		}),
		t.cadScenarioRun(),
	)
}

func scenarioColumns(*call) []column[cad.Scenario] {
	type S = cad.Scenario
	return []column[S]{
		{title: "SCENARIO", text: func(s S) string { return s.Name }},
		{title: "PATTERN", text: func(s S) string { return string(s.Pattern) }},
		{title: "AGENTS", right: true, text: func(s S) string { return fmt.Sprint(len(s.Agents)) }},
		{title: "TASKS", right: true, text: func(s S) string { return fmt.Sprint(len(s.Tasks)) }},
		{title: "ESTIMATE", right: true, text: func(s S) string { return fmt.Sprintf("%gs", s.EstimatedDuration) }},
		{title: "ORIGIN", text: func(s S) string {
			if s.Builtin {
				return "builtin"
			}
			return "swarm file"
		}},
		{title: "DESCRIPTION", most: 60, text: func(s S) string { return s.Description }},
	}
}

// starting are the flags of commands that start a workflow.
type starting struct {
	cad.StartWorkflow
	out string
	w   waiting
}

func (s *starting) bind(f *pflag.FlagSet) {
	f.StringVar(&s.out, "out", "", "`DIR` that the files of its workspaces lie in (default one for each, beside the data file)")
	f.StringVar(&s.Kernel, "kernel", "", "`KERNEL` that computes its geometry (default the first that there is)")
	f.StringVar(&s.Session, "session", "", "run its tasks within this session `ID`")
	s.w.bind(f, "wait until it is over; exit 1 unless it is completed")
	source(f, "out", "file")
	source(f, "session", "session")
	source(f, "kernel", "enum:embedded,occt")
}

func (s *starting) check(c *call) error {
	if s.out != "" {
		abs, err := filepath.Abs(c.env.path(s.out))
		if err != nil {
			return fmt.Errorf("find %s: %w", s.out, err)
		}
		s.Directory = abs
	}
	return s.w.check(c)
}

func (t *tree) cadScenarioRun() *cobra.Command {
	var s starting
	return t.command(spec{
		use: "run NAME", short: "Run a scenario with agents and workspaces of its own", effect: Writes, args: []string{"cadscenario"},
		long: "Make the agents and workspaces of a scenario, give the agents their tasks as the turn of each comes, and print the\n" +
			"workflow. Ids that an earlier run has taken get a number: lid_designer_2, ws_lid_2. With --wait: wait until it is over,\n" +
			"print it, and exit 1 unless it is completed. A workflow whose engine ends goes on with the next one:\n" +
			"`cad workflow wait ID`.",
		example: "cad scenario run assembly_design --out parts --wait\ncad scenario run assembly_design --override lid_designer=optimizer",
		flags: func(f *pflag.FlagSet) {
			s.bind(f)
			f.StringArrayVar(&s.Overrides, "override", nil, "give an agent another role, `AGENT=ROLE`; may be repeated")
		},
		check: func(c *call, _ []string) error { return s.check(c) },
		run: func(c *call, args []string) error {
			s.Scenario = args[0]
			made, err := c.eng.CAD.RunScenario(c.ctx, c.by, s.StartWorkflow)
			if err != nil {
				return err
			}
			return s.w.printWorkflow(c, made)
		},
	})
}

func (t *tree) cadDecompose() *cobra.Command {
	var d cad.Decompose
	var s starting
	return t.command(spec{
		use: "decompose GOAL", short: "Turn a goal into tasks for CAD agents", effect: Writes,
		long: "Turn a goal into tasks whose operations can be carried out, and print them. Known without asking anybody: a box with or\n" +
			"without a lid, a bracket, a shaft, and an assembly of a housing, a lid and supports, with their sizes in mm, cm or in.\n" +
			"With --agent an agent of the fleet is asked about anything else; its answer is checked like a scenario.\n" +
			"The tasks then wait: `cad assign TASK AGENT` gives one to an agent, `cad workflow cancel ID` drops them. With --run\n" +
			"they get agents and workspaces of their own and begin at once, and the workflow is printed.",
		example: "cad decompose 'a box with lid, 100x80x20 mm, wall 2 mm'\ncad decompose 'bracket 60x40x5 mm with 2 holes diameter 6' --run --wait --out parts",
		flags: func(f *pflag.FlagSet) {
			s.bind(f)
			f.StringVar(&d.Agent, "agent", "", "ask this agent of the fleet, by `NAME`")
			f.BoolVar(&d.Run, "run", false, "begin at once, with agents and workspaces of its own")
			source(f, "agent", "agent")
		},
		check: func(c *call, _ []string) error {
			if s.w.on && !d.Run {
				return usage("wait", "--wait: nothing begins without --run")
			}
			if d.Agent != "" {
				if err := c.activate(); err != nil {
					return err
				}
			}
			return s.check(c)
		},
		run: func(c *call, args []string) error {
			d.Goal, d.StartWorkflow = args[0], s.StartWorkflow
			made, err := c.eng.CAD.Decompose(c.ctx, c.by, d)
			if err != nil {
				return err
			}
			if d.Run {
				return s.w.printWorkflow(c, made)
			}
			return list(c, core.Page[cad.TaskAssignment]{Items: made.Assignments}, assignmentColumns(c))
		},
	})
}

func assignmentColumns(*call) []column[cad.TaskAssignment] {
	type A = cad.TaskAssignment
	return []column[A]{
		{title: "TASK", text: func(a A) string { return a.TaskID }},
		{title: "STATUS", text: func(a A) string {
			switch {
			case a.Waiting != "":
				return "waiting for you"
			case a.Open():
				return "unassigned"
			}
			return string(a.Status)
		}},
		{title: "AGENT", text: func(a A) string { return a.AgentID }},
		{title: "ROLE", text: func(a A) string { return a.RoleName }},
		{title: "WORKSPACE", wide: true, text: func(a A) string { return a.WorkspaceID }},
		{title: "NEEDS", most: 30, text: func(a A) string { return strings.Join(a.Dependencies, ",") }},
		{title: "OPS", right: true, text: func(a A) string { return fmt.Sprintf("%d/%d", a.Done, a.DoneBefore+a.Steps()) }},
		{title: "WORKFLOW", wide: true, text: func(a A) string { return a.WorkflowID }},
		{title: "CARRIED OUT BY", wide: true, text: func(a A) string { return a.SwarmTask }},
		{title: "DESCRIPTION", most: 60, text: func(a A) string { return cmp.Or(a.Failure().Message, a.Description) }},
	}
}

func (t *tree) cadAssign() *cobra.Command {
	var w waiting
	return t.command(spec{
		use: "assign TASK AGENT", short: "Give a task to a CAD agent", effect: Writes, args: []string{"", "cadagent"},
		long: "Give a CAD agent a task that `cad decompose` made: its id for the newest of this name, or WORKFLOW/ID. The agent's role\n" +
			"must allow all that the task needs; it begins once its dependencies are completed. Or give it a task of its own, as JSON:\n" +
			`{"description":"…","operations":[{"id":"p","method":"entity.create_point","params":{"coordinates":[1,2]}}],"check":"size(entities) == 1"}.`,
		example: "cad assign box modeler_a\ncad assign @plate.json modeler_a --wait",
		flags: func(f *pflag.FlagSet) {
			w.bind(f, "wait until the task is over; exit 1 unless it is completed")
		},
		check: func(c *call, _ []string) error { return w.check(c) },
		run: func(c *call, args []string) error {
			if args[0] != "-" && !strings.HasPrefix(args[0], "@") && !strings.HasPrefix(strings.TrimSpace(args[0]), "{") {
				a, err := c.eng.CAD.AssignTask(c.ctx, c.by, args[0], args[1])
				if err != nil {
					return err
				}
				return w.printAssignment(c, a)
			}
			input, err := c.document("task", args[0])
			if err != nil {
				return err
			}
			a, err := c.eng.CAD.Assign(c.ctx, c.by, args[1], input)
			if err != nil {
				return err
			}
			return w.printAssignment(c, a)
		},
	})
}
