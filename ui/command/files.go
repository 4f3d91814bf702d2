package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
)

func (t *tree) fileRules() *cobra.Command {
	return t.group("files", "What agents may read and write beside their directory, and what is hidden",
		lists(t, spec{use: "list", short: "List the rules", effect: Reads},
			[]string{"read", "write", "hide"}, filesColumns,
			func(c *call, f core.Filter) (core.Page[files.Rule], error) {
				all, err := c.eng.Files.Rules(c.ctx, c.by.Tenant)
				return pick(all, err, f, func(r files.Rule) traits {
					return traits{status: string(r.Effect), agent: r.Agent, at: r.CreatedAt, text: r.ID() + " " + r.Owner}
				})
			}),
		t.filesPut(files.Read, "read PATH", "Let agents read a file or a directory", "files read ~/go/pkg/mod --role coder",
			"Let agents, tasks and servers read a file or a directory with all that is in it, for everybody, a role or an agent.\n"),
		t.filesPut(files.Write, "write PATH", "Let agents read and write a file or a directory", "files write /work/shared --role coder",
			"Let agents, tasks and servers read and write a file or a directory with all that is in it, for everybody, a role or\nan agent. "),
		t.filesPut(files.Hide, "hide PATH", "Hide a file or a directory", "files hide /work/app/.env",
			"Hide a file or a directory from agents, tasks and servers, wherever it lies and whatever else names it.\n"),
		t.filesRemove(),
	)
}

const filesLong = "Of rules about the same path hide wins over write, and write over read. They hold from the next start of a process\n" +
	"on, not for an open one. The engine's own files and agents' homes can't be given."

// fileRule reads a rule about a path of the engine's machine.
func (c *call) fileRule(effect files.Effect, w whom, path string) (r files.Rule, err error) {
	if c.env.Abroad {
		return r, core.Errorf(core.Denied, "path: what is on the machine of the data file can't be named from another one").With("field", "path")
	}
	if !strings.HasPrefix(path, "~") {
		path = c.env.path(path)
	}
	if r, err = files.NewRule(effect, path); err != nil {
		return r, err
	}
	r.Role, r.Agent = w.role, w.agent
	return r, r.Check()
}

func (t *tree) filesPut(effect files.Effect, use, short, example, long string) *cobra.Command {
	var w whom
	var rule files.Rule
	return t.command(spec{
		use: use, short: short, effect: Writes, role: Admin, args: []string{"file"}, long: long + filesLong, example: example, flags: w.bind,
		check: func(c *call, args []string) (err error) {
			rule, err = c.fileRule(effect, w, args[0])
			return err
		},
		run: func(c *call, _ []string) error {
			made, _, err := c.eng.Files.Put(c.ctx, c.by, rule)
			if err != nil {
				return err
			}
			return record(c, made, filesColumns(c))
		},
	})
}

func (t *tree) filesRemove() *cobra.Command {
	var w whom
	var rule files.Rule
	return t.command(spec{
		use: "remove PATH", short: "End a rule", effect: Writes, role: Admin, confirm: ConfirmAsk, args: []string{"filerule"},
		flags: func(f *pflag.FlagSet) { w.bind(f) },
		check: func(c *call, args []string) (err error) {
			rule, err = c.fileRule(files.Hide, w, args[0])
			return err
		},
		run: func(c *call, _ []string) error {
			gone, err := c.eng.Files.Remove(c.ctx, c.by, rule.ID())
			if err != nil {
				return err
			}
			return record(c, gone, filesColumns(c))
		},
	})
}

func filesColumns(c *call) []column[files.Rule] {
	type R = files.Rule
	return []column[R]{
		{title: "PATH", most: 60, text: func(r R) string { return r.Path }},
		{title: "RULE", text: func(r R) string { return string(r.Effect) }},
		{title: "FOR", text: func(r R) string {
			if whom := r.Whom(); whom != "" {
				return whom
			}
			return "everybody"
		}},
		{title: "OWNER", text: func(r R) string { return r.Owner }},
		{title: "AGE", right: true, wide: true, text: func(r R) string { return c.age(r.UpdatedAt) }},
	}
}

func liveFileRules(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Files.Rules(c.ctx, tenant)
	return candidates(all, err, func(r files.Rule) Candidate {
		return Candidate{r.Path, strings.TrimSpace(string(r.Effect) + " " + r.Whom())}
	})
}
