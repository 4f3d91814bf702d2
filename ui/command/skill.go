package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/skill"
)

func (t *tree) skills() *cobra.Command {
	return t.group("skill", "What agents can do",
		t.skillLoad(),
		t.skillCheck(),
		t.skillList(),
		t.command(spec{
			use: "show NAME[@VERSION]", short: "Show a skill; without a version the newest", effect: Reads, args: []string{"skill"},
			run: shows(func(c *call, ref string) (*skill.Skill, error) { return c.eng.Skills.Skill(c.by.Tenant, ref) }),
		}),
		t.skillOrder(),
		t.skillInvoke(),
		t.skillExecutions(),
		t.skillExecution(),
		t.skillFigures(),
		t.skillUnload(),
		t.command(spec{
			use: "registry", short: "Show the newest of every skill and what each depends on", effect: Reads,
			run: func(c *call, _ []string) error { return c.show(c.eng.Skills.Registry(c.by.Tenant)) },
		}),
		t.skillSources(),
		t.skillForget(),
		t.skillProblems(),
	)
}

func (t *tree) skillLoad() *cobra.Command {
	return t.command(spec{
		use: "load PATH…", short: "Load skills from files and directories", effect: Writes, args: []string{"file"},
		long: "Load skills from files (*.yaml, *.yml, *.json) and directories, and watch them: they are read again when they\n" +
			"change and when the engine starts. A file is taken whole, or refused with all that is wrong with it; what was\n" +
			"loaded of it before stays. See: help skill-file",
		example: "skill load skills/",
		run: func(c *call, paths []string) error {
			given, err := c.given(paths)
			if err != nil {
				return err
			}
			got, err := c.eng.Skills.Load(c.ctx, c.by, given)
			if err != nil {
				return err
			}
			if len(got.Changes) > 0 || len(got.Refused) == 0 {
				if err := list(c, core.Page[skill.Change]{Items: got.Changes}, changeColumns(c)); err != nil {
					return err
				}
			}
			return c.refused(got.Refused)
		},
	})
}

func (t *tree) skillCheck() *cobra.Command {
	return t.command(spec{
		use: "check PATH…", short: "Tell what loading files and directories would refuse", effect: Reads, args: []string{"file"},
		example: "skill check skills/navigate.yaml",
		run: func(c *call, paths []string) error {
			given, err := c.given(paths)
			if err != nil {
				return err
			}
			problems, err := c.eng.Skills.Check(c.by.Tenant, given)
			if err != nil {
				return err
			}
			if err := c.refused(problems); err != nil {
				return err
			}
			return c.say(map[string]any{"ok": true}, "every skill can be loaded")
		},
	})
}

// given makes the paths of a line absolute.
func (c *call) given(paths []string) (skill.Given, error) {
	var g skill.Given
	for _, p := range paths {
		abs, err := filepath.Abs(c.env.path(p))
		if err != nil {
			return g, fmt.Errorf("find %s: %w", p, err)
		}
		g.Paths = append(g.Paths, abs)
	}
	return g, nil
}

// refused is the error of all problems, files named as seen from here.
func (c *call) refused(problems []document.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	near := make([]document.Problem, len(problems))
	for i, p := range problems {
		p.File = c.near(p.File)
		near[i] = p
	}
	return inFile(document.Err(near))
}

// near is a path as seen from the current directory if it is below that.
func (c *call) near(path string) string {
	dir := c.env.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return path
		}
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

func changeColumns(c *call) []column[skill.Change] {
	type C = skill.Change
	return []column[C]{
		{title: "ACTION", text: func(x C) string { return x.Action }},
		{title: "SKILL", text: func(x C) string { return x.Name }},
		{title: "VERSION", text: func(x C) string { return x.Version }},
		{title: "DIGEST", wide: true, text: func(x C) string { return x.Digest }},
		{title: "SOURCE", text: func(x C) string { return c.near(x.Source) }},
	}
}

func (t *tree) skillList() *cobra.Command {
	var tags []string
	return lists(t, spec{
		use: "list", short: "List the skills, the newest version of each first", effect: Reads,
		flags: func(f *pflag.FlagSet) {
			f.StringArrayVar(&tags, "tag", nil, "only with this `TAG`; may be repeated, then with all of them")
			source(f, "tag", "tag")
		},
	}, nil, skillColumns, func(c *call, f core.Filter) (core.Page[*skill.Skill], error) {
		return c.eng.Skills.List(c.by.Tenant, f, tags...)
	})
}

func skillColumns(c *call) []column[*skill.Skill] {
	type S = *skill.Skill
	return []column[S]{
		{title: "SKILL", text: func(s S) string { return s.Name }},
		{title: "VERSION", text: func(s S) string {
			if c.eng.Skills.Newest(s) {
				return s.Version
			}
			return s.Version + " (older)"
		}},
		{title: "RUNNER", text: func(s S) string { return s.Runner.Kind }},
		{title: "EFFECTS", text: func(s S) string { return strings.Join(core.Strings(s.Effects...), ",") }},
		{title: "NEEDS", most: 30, text: func(s S) string { return strings.Join(s.Dependencies, ",") }},
		{title: "TAGS", most: 24, text: func(s S) string { return strings.Join(s.Tags, ",") }},
		{title: "TIMEOUT", wide: true, right: true, text: func(s S) string { return fmt.Sprintf("%ds", s.Timeout) }},
		{title: "RETRIES", wide: true, right: true, text: func(s S) string { return count(int64(s.MaxRetries)) }},
		{title: "UPDATED", wide: true, text: func(s S) string { return stamp(s.UpdatedAt) }},
		{title: "DIGEST", wide: true, text: func(s S) string { return s.Digest }},
		{title: "SOURCE", wide: true, text: func(s S) string { return s.Source }},
		{title: "DESCRIPTION", most: 48, text: func(s S) string { return s.Description }},
	}
}

// inOrder is one step of the order in which a skill's chain runs.
type inOrder struct {
	Position     int      `json:"position"` // from 1; the skill itself is the last
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Dependencies []string `json:"dependencies"`
}

func (t *tree) skillOrder() *cobra.Command {
	return t.command(spec{
		use: "order NAME[@VERSION]", short: "List what a skill runs: its dependencies in order, itself last", effect: Reads, args: []string{"skill"},
		run: func(c *call, args []string) error {
			chain, err := c.eng.Skills.Order(c.by.Tenant, args[0])
			if err != nil {
				return err
			}
			steps := make([]inOrder, len(chain))
			for i, s := range chain {
				steps[i] = inOrder{i + 1, s.Name, s.Version, s.Dependencies}
			}
			return list(c, core.Page[inOrder]{Items: steps}, []column[inOrder]{
				{title: "STEP", right: true, text: func(s inOrder) string { return fmt.Sprint(s.Position) }},
				{title: "SKILL", text: func(s inOrder) string { return s.Name }},
				{title: "VERSION", text: func(s inOrder) string { return s.Version }},
				{title: "NEEDS", text: func(s inOrder) string { return strings.Join(s.Dependencies, ",") }},
			})
		},
	})
}

func (t *tree) skillUnload() *cobra.Command {
	return t.command(spec{
		use: "unload NAME[@VERSION]", short: "Forget a skill; without a version all of them", effect: Destroys, confirm: ConfirmAsk, args: []string{"skill"},
		long: "Forget a version of a skill, or all of them. What another skill needs stays. Its file is not touched, and is not\n" +
			"loaded again until it changes or `skill load` names it. Runs that are under way go on.",
		run: func(c *call, args []string) error {
			gone, err := c.eng.Skills.Unload(c.ctx, c.by, args[0])
			if err != nil {
				return err
			}
			return list(c, core.Page[skill.Change]{Items: gone}, changeColumns(c))
		},
	})
}

func (t *tree) skillSources() *cobra.Command {
	return t.command(spec{
		use: "sources", short: "List the files and directories that skills are read from", effect: Reads,
		run: func(c *call, _ []string) error {
			return list(c, core.Page[skill.Source]{Items: c.eng.Skills.Sources(c.by.Tenant)}, sourceColumns(c))
		},
	})
}

func (t *tree) skillForget() *cobra.Command {
	return t.command(spec{
		use: "forget PATH", short: "Stop reading skills from a file or directory; those loaded stay", effect: Writes, args: []string{"source"},
		run: func(c *call, args []string) error {
			given, err := c.given(args)
			if err != nil {
				return err
			}
			gone, err := c.eng.Skills.Forget(c.ctx, c.by, given.Paths[0])
			if err != nil {
				return err
			}
			return record(c, gone, sourceColumns(c))
		},
	})
}

func (t *tree) skillProblems() *cobra.Command {
	return t.command(spec{
		use: "problems", short: "List what is wrong with skill files that were refused when they were last read", effect: Reads,
		run: func(c *call, _ []string) error {
			type P = document.Problem
			return list(c, core.Page[P]{Items: c.eng.Skills.Problems(c.by.Tenant)}, []column[P]{
				{title: "FILE", text: func(p P) string { return fmt.Sprintf("%s:%d", c.near(p.File), p.Line) }},
				{title: "FIELD", text: func(p P) string { return p.Field }},
				{title: "PROBLEM", text: func(p P) string { return p.Message }},
			})
		},
	})
}

func sourceColumns(c *call) []column[skill.Source] {
	return []column[skill.Source]{
		{title: "PATH", text: func(s skill.Source) string { return c.near(s.Path) }},
		{title: "ADDED", text: func(s skill.Source) string { return stamp(s.AddedAt) }},
	}
}
