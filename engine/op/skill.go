package op

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/face"
	"swarmdeck/engine/skill"
)

func skills() []*Op {
	ref := arg("NAME[@VERSION]", "skill")
	ref.Least, ref.Most, ref.Client = 1, maxRef, ofSkill
	return []*Op{
		skillLoad(),
		skillCheck(),
		skillList(),
		show(Op{
			Name: "skill show", Short: "Show a skill; without a version the newest", ForAgents: true,
			Tool: Tool{
				Name: "show_skill", Names: map[string]string{"name": "skill"},
				About: "Show a skill with the schemas of its parameters and its result.",
			},
		}, ref,
			func(_ context.Context, c *Call, ref string) (*skill.Skill, error) {
				return c.Skills.Skill(c.By.Tenant, ref)
			}),
		change(Op{
			Name: "skill order", Short: "List what a skill runs: its dependencies in order, itself last", Effect: Reads, ForAgents: true,
		}, ref, skillOrder),
		skillInvoke(),
		skillExecutions(),
		show(Op{Name: "skill execution", Short: "Show one run of a skill"}, arg("ID", "execution"),
			byTenant(func(c *Call) tenantRead[string, skill.Execution] { return c.Skills.Execution })),
		skillFigures(),
		change(Op{
			Name: "skill unload", Short: "Forget a skill; without a version all of them", Effect: Destroys, Confirm: ConfirmAsk, Done: "unloaded",
			Long: "Forget a version of a skill, or all of them. What another skill needs stays. Its file is not touched, and is not\n" +
				"loaded again until it changes or `skill load` names it. Runs that are under way go on.",
		}, ref, byCaller(func(c *Call) callerAct[string, []skill.Change] { return c.Skills.Unload })),
		define(Op{Name: "skill registry", Short: "Show the newest of every skill and what each depends on", Effect: Reads, Full: true},
			func(_ context.Context, c *Call) (skill.Registry, error) { return c.Skills.Registry(c.By.Tenant), nil }),
		define(Op{Name: "skill sources", Short: "List the files and directories that skills are read from", Effect: Reads},
			func(_ context.Context, c *Call) ([]skill.Source, error) { return c.Skills.Sources(c.By.Tenant), nil }),
		change(Op{Name: "skill forget", Short: "Stop reading skills from a file or directory; those loaded stay", Done: "reads no more skills from"},
			arg("PATH", "source"), func(ctx context.Context, c *Call, path string) (gone skill.Source, err error) {
				if path, err = c.absolute(path); err != nil {
					return gone, err
				}
				return c.Skills.Forget(ctx, c.By, path)
			}),
		define(Op{Name: "skill problems", Short: "List what is wrong with skill files that were refused when they were last read", Effect: Reads},
			func(_ context.Context, c *Call) ([]document.Problem, error) {
				return c.Skills.Problems(c.By.Tenant), nil
			}),
	}
}

// What a client's model reads of the word for a skill, and how long that may be.
const (
	ofSkill = "name, or name@version; without a version the newest"
	maxRef  = 100
)

// absolute is a path that the caller gave, for the engine to remember.
func (c *Call) absolute(path string) (string, error) {
	abs, err := filepath.Abs(c.path(path))
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return abs, nil
}

// given are the files and directories of a line.
func (c *Call) given(paths []string) (g skill.Given, err error) {
	for _, p := range paths {
		if p, err = c.absolute(p); err != nil {
			return g, err
		}
		g.Paths = append(g.Paths, p)
	}
	return g, nil
}

// wrong is the error of all problems, files named as seen from the caller.
func (c *Call) wrong(problems []document.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	near := make([]document.Problem, len(problems))
	for i, p := range problems {
		p.File = face.At{Dir: c.Dir}.Near(p.File)
		near[i] = p
	}
	return &Failed{document.Err(near)}
}

func skillLoad() *Op {
	var paths []string
	return define(Op{
		Name: "skill load", Short: "Load skills from files and directories", Example: "skill load skills/", Done: "loaded",
		Long: "Load skills from files (*.yaml, *.yml, *.json) and directories, and watch them: they are read again when they\n" +
			"change and when the engine starts. A file is taken whole, or refused with all that is wrong with it; what was\n" +
			"loaded of it before stays. See: help skill-file",
		Params: []*Param{place(&paths, "PATH…", "file")},
	}, func(ctx context.Context, c *Call) ([]skill.Change, error) {
		given, err := c.given(paths)
		if err != nil {
			return nil, err
		}
		got, err := c.Skills.Load(ctx, c.By, given)
		if err != nil {
			return nil, err
		}
		return got.Changes, c.wrong(got.Refused)
	})
}

// Checked says that nothing is wrong with what was looked at.
type Checked struct {
	OK bool `json:"ok"`
}

// Tell says it.
func (Checked) String() string { return "every skill can be loaded" }

func skillCheck() *Op {
	var paths []string
	return define(Op{
		Name: "skill check", Short: "Tell what loading files and directories would refuse", Effect: Reads, Example: "skill check skills/navigate.yaml",
		Params: []*Param{place(&paths, "PATH…", "file")},
	}, func(_ context.Context, c *Call) (none Checked, err error) {
		given, err := c.given(paths)
		if err != nil {
			return none, err
		}
		problems, err := c.Skills.Check(c.By.Tenant, given)
		if err == nil {
			err = c.wrong(problems)
		}
		return Checked{err == nil}, err
	})
}

func skillList() *Op {
	var tags []string
	return list(Op{
		Name: "skill list", Short: "List the skills, the newest version of each first", ForAgents: true,
		Params: []*Param{{
			Name: "tag", About: "only with this `TAG`; may be repeated, then with all of them", Into: &tags, Whole: true, From: "tag",
			Least: 1, Most: 30, Client: "only with this tag",
		}},
		Tool: Tool{Name: "list_skills", About: "List the skills that can be run.", By: []string{"kind", "since", "until", "match"}, Names: map[string]string{"kind": "runner"}},
	}, func(_ context.Context, c *Call, f core.Filter) (core.Page[*skill.Skill], error) {
		return c.Skills.List(c.By.Tenant, f, tags...)
	})
}

// InOrder is one step of the order in which a skill's chain runs.
type InOrder struct {
	Position     int      `json:"position"` // from 1; the skill itself is the last
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Dependencies []string `json:"dependencies"`
}

func skillOrder(_ context.Context, c *Call, ref string) ([]InOrder, error) {
	chain, err := c.Skills.Order(c.By.Tenant, ref)
	steps := make([]InOrder, len(chain))
	for i, s := range chain {
		steps[i] = InOrder{i + 1, s.Name, s.Version, s.Dependencies}
	}
	return steps, err
}

func skillExecutions() *Op {
	var name string
	return list(Op{
		Name: "skill executions", Short: "List the runs of skills, newest first", Example: "skill executions --skill detect --status failed",
		Statuses: core.Strings(skill.Statuses()...), Agents: "subagent",
		Params: []*Param{flag(&name, "skill", "only of this skill `NAME`").from("skill")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[skill.Execution], error) {
		return c.Skills.Executions(ctx, c.By.Tenant, name, f)
	})
}

func skillFigures() *Op {
	var name string
	return define(Op{
		Name: "skill figures", Short: "Tell how the last 200 runs of a skill went, or of every skill", Effect: Reads,
		Params: []*Param{maybe(&name, "NAME", "skill")},
	}, func(ctx context.Context, c *Call) (all []skill.Figures, err error) {
		names := []string{name}
		if name == "" {
			names = nil
			for _, s := range c.Skills.Catalog(c.By.Tenant) {
				if c.Skills.Newest(s) {
					names = append(names, s.Name)
				}
			}
		}
		for i := 0; i < len(names) && err == nil; i++ {
			var one skill.Figures
			name, _, _ := strings.Cut(names[i], "@")
			one, err = c.Skills.Figures(ctx, c.By.Tenant, name)
			all = append(all, one)
		}
		return all, err
	})
}
