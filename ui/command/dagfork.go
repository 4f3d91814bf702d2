package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

func (t *tree) dagFork() *cobra.Command {
	var q resource.ForkRequest
	var at, task string
	var plans []string
	var dry bool
	return t.command(spec{
		use: "fork AGENT", short: "Make a new agent that goes on from an event of another", effect: Writes, args: []string{"agent"},
		long: "Make a new agent that goes on from an event of another, on a branch and in a directory of its own. It is told the\n" +
			"conversation up to there, made again from the record, before its first prompt. What the agent had at the event\n" +
			"goes by the plan: snapshot gives the fork a copy of its own, as it was then; keep leaves it to the agent, to both\n" +
			"where it can be shared, or with :BRANCH to that branch; discard goes without it. What is not planned goes as\n" +
			"--dry-run shows. In the midst of a run the fork goes on at once; --task '' leaves it idle.",
		example: "dag fork ada --at 3f1c09aa --dry-run\ndag fork ada --at 3f1c09aa --to other --task 'try it without the cache'\ndag fork ada --at 3f1c09aa --plan dir-12ab=snapshot --plan process-7=keep:main",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&at, "at", "", "go on from this `EVENT`: its id, or 8 digits of it or more")
			f.StringVar(&q.To, "to", "", "name of the new `BRANCH` (default the new agent's name)")
			f.StringVar(&q.Name, "name", "", "`NAME` of the new agent (default one that is free)")
			f.StringVar(&task, "task", "", "what it is told first (default in the midst of a run: to go on)")
			f.StringArrayVar(&plans, "plan", nil, "`RESOURCE=keep|snapshot|discard`, once for each; or all of them in a JSON file")
			f.BoolVar(&dry, "dry-run", false, "show what the fork would be, and change nothing")
			source(f, "at", "record")
			source(f, "plan", "json")
		},
		check: func(c *call, args []string) (err error) {
			if at == "" {
				return usage("at", "dag fork: --at is missing; allowed: an event of %q", core.Clip(args[0]))
			}
			q.AgentID = args[0]
			if c.flags.Changed("task") {
				q.Task = &task
			}
			if q.Plan, err = c.plan(plans); err != nil || dry {
				return err
			}
			return c.activate()
		},
		run: func(c *call, _ []string) (err error) {
			if q.At, err = c.eng.DAG.Find(c.ctx, c.by.Tenant, at); err != nil {
				return err
			}
			if dry {
				p, err := c.eng.Resources.Plan(c.ctx, c.by.Tenant, q)
				if err != nil {
					return err
				}
				return c.show(p)
			}
			made, err := c.eng.Resources.Fork(c.ctx, c.by, q)
			if err != nil {
				return err
			}
			return c.say(made, "forked %s to %s at %s, continued from record; it works in %s", made.AgentID, made.Name, made.AtEvent[:min(12, len(made.AtEvent))], made.Dir)
		},
	})
}

// plan reads what is to be done with the resources of a fork.
func (c *call) plan(given []string) (map[string]resource.Choice, error) {
	all := map[string]resource.Choice{}
	add := func(name string, choice resource.Choice) error {
		if _, twice := all[name]; twice {
			return usage("plan", "--plan: %q is planned twice", core.Clip(name))
		}
		all[name] = choice
		return nil
	}
	for _, text := range given {
		if name, mode, ok := strings.Cut(text, "="); ok && !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
			mode, by, _ := strings.Cut(mode, ":")
			if err := checkMode(mode); err != nil {
				return nil, err
			}
			if err := add(name, resource.Choice{Mode: dag.Plan(mode), KeptBy: by}); err != nil {
				return nil, err
			}
			continue
		}
		if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "@") && text != "-" {
			text = "@" + text
		}
		data, err := c.text("plan", text)
		if err != nil {
			return nil, err
		}
		more, err := readPlan(data)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if err := checkMode(string(p.Mode)); err != nil {
				return nil, err
			}
			if err := add(p.Resource, resource.Choice{Mode: p.Mode, KeptBy: p.KeptBy}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func checkMode(mode string) error {
	if allowed := []string{"keep", "snapshot", "discard"}; !slices.Contains(allowed, mode) {
		return usage("plan", "--plan: mode %q is not allowed; allowed: %s", core.Clip(mode), strings.Join(allowed, ", "))
	}
	return nil
}

// readPlan reads the model's list [{"resource":…,"mode":…,"kept_by":…}], or an
// object of modes by resource.
func readPlan(data []byte) ([]dag.VolumePlan, error) {
	var list []dag.VolumePlan
	if core.Raw(data).Kind() == '[' {
		if err := core.Decode(data, &list); err != nil {
			return nil, usage("plan", "--plan: %v", err)
		}
		return list, nil
	}
	modes := map[string]dag.Plan{}
	if err := core.Decode(data, &modes); err != nil {
		return nil, usage("plan", "--plan: %v; allowed: {\"RESOURCE\":\"keep|snapshot|discard\"}, or a list of {resource, mode, kept_by}", err)
	}
	for name, mode := range modes {
		list = append(list, dag.VolumePlan{Resource: name, Mode: mode})
	}
	slices.SortFunc(list, func(a, b dag.VolumePlan) int { return strings.Compare(a.Resource, b.Resource) })
	return list, nil
}
