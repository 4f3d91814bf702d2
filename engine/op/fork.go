package op

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

func dagFork() *Op {
	var q resource.ForkRequest
	var task string
	var plans []string
	var dry bool
	first := flag(&task, "task", "what it is told first (default in the midst of a run: to go on)")
	return define(Op{
		Name: "dag fork", Short: "Make a new agent that goes on from an event of another", Undo: "agent delete", Done: "forked",
		Long: "Make a new agent that goes on from an event of another, on a branch and in a directory of its own. It is told the\n" +
			"conversation up to there, made again from the record, before its first prompt. What the agent had at the event\n" +
			"goes by the plan: snapshot gives the fork a copy of its own, as it was then; keep leaves it to the agent, to both\n" +
			"where it can be shared, or with :BRANCH to that branch; discard goes without it. What is not planned goes as\n" +
			"--dry-run shows. In the midst of a run the fork goes on at once; --task '' leaves it idle.\n" +
			"With --edit the event is another for the fork: text of a message ({\"text\":…}), args of a tool call ({\"args\":{…}}),\n" +
			"status, result and error of a tool result. The agent's own record stays; the fork's has a substitution.",
		Example: "dag fork ada --at 3f1c09aa --dry-run\ndag fork ada --at 3f1c09aa --to other --task 'try it without the cache'\ndag fork ada --at 3f1c09aa --plan dir-12ab=snapshot --plan process-7=keep:main\ndag fork ada --at 3f1c09aa --edit '{\"result\":{\"rc\":1}}' --reason 'what if it fails?'",
		Params: []*Param{
			place(&q.AgentID, "AGENT", "agent"),
			need(&q.At, "at", "go on from this `EVENT`: its id, or 8 digits of it or more").from("record"),
			flag(&q.To, "to", "name of the new `BRANCH` (default the new agent's name)"),
			flag(&q.Name, "name", "`NAME` of the new agent (default one that is free)"),
			first,
			{Name: "plan", About: "`RESOURCE=keep|snapshot|discard`, once for each; or all of them in a JSON file", Into: &plans, Whole: true, From: "json"},
			flag(&q.Edit, "edit", "the event as it is for the fork: a `JSON` object (@file, - for stdin) with text, args, or status and result"),
			flag(&q.Reason, "reason", "why it is edited, for the record"),
			flag(&dry, "dry-run", "show what the fork would be, and change nothing"),
		},
		Check: func(c *Call) (err error) {
			if first.Given {
				q.Task = &task
			}
			if q.Plan, err = c.plan(plans); err != nil || dry {
				return err
			}
			return c.Activate()
		},
	}, func(ctx context.Context, c *Call) (made Either[resource.Proposal, Told[resource.Forked]], err error) {
		if q.At, err = c.DAG.Find(ctx, c.By.Tenant, q.At); err != nil {
			return made, err
		}
		if dry {
			return one[resource.Proposal, Told[resource.Forked]](c.Resources.Plan(ctx, c.By.Tenant, q))
		}
		f, err := c.Resources.Fork(ctx, c.By, q)
		return other[resource.Proposal](told(f, fmt.Sprintf("forked %s to %s at %s, continued from record; it works in %s", f.AgentID, f.Name, f.AtEvent[:min(12, len(f.AtEvent))], f.Dir)), err)
	})
}

// plan reads what is to be done with the resources of a fork.
func (c *Call) plan(given []string) (map[string]resource.Choice, error) {
	all := map[string]resource.Choice{}
	for _, text := range given {
		some, err := c.planned(text)
		if err != nil {
			return nil, err
		}
		for _, p := range some {
			if allowed := []dag.Plan{"keep", "snapshot", "discard"}; !slices.Contains(allowed, p.Mode) {
				return nil, usage("plan", "--plan: mode %q is not allowed; allowed: keep, snapshot, discard", core.Clip(string(p.Mode)))
			}
			if _, twice := all[p.Resource]; twice {
				return nil, usage("plan", "--plan: %q is planned twice", core.Clip(p.Resource))
			}
			all[p.Resource] = resource.Choice{Mode: p.Mode, KeptBy: p.KeptBy}
		}
	}
	return all, nil
}

// planned reads RESOURCE=MODE[:BRANCH], or JSON: the model's list
// [{"resource":…,"mode":…,"kept_by":…}], or an object of modes by resource.
func (c *Call) planned(text string) ([]dag.VolumePlan, error) {
	document := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	if name, mode, ok := strings.Cut(text, "="); ok && !document {
		mode, by, _ := strings.Cut(mode, ":")
		return []dag.VolumePlan{{Resource: name, Mode: dag.Plan(mode), KeptBy: by}}, nil
	}
	if !document && !strings.HasPrefix(text, "@") && text != "-" {
		text = "@" + text
	}
	data, err := c.Read("plan", text)
	if err != nil {
		return nil, err
	}
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
	core.Sort(list, func(a, b dag.VolumePlan) int { return strings.Compare(a.Resource, b.Resource) })
	return list, nil
}
