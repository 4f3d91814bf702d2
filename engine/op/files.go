package op

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/reach"
)

func fileRules() []*Op {
	return []*Op{
		picked(Op{Name: "files list", Short: "List the rules", Statuses: core.Strings(files.Read, files.Write, files.Hide)},
			func(c *Call) tenantList[files.Rule] { return c.Files.Rules },
			func(_ *Call, r files.Rule) core.Traits {
				return core.Traits{Status: string(r.Effect), Agent: r.Agent, At: r.CreatedAt, Text: r.ID() + " " + r.Owner}
			}),
		filesPut(files.Read, Op{
			Name: "files read", Short: "Let agents read a file or a directory", Example: "files read ~/go/pkg/mod --role coder",
			Long: "Let agents, tasks and servers read a file or a directory with all that is in it, for everybody, a role or an agent.\n",
		}),
		filesPut(files.Write, Op{
			Name: "files write", Short: "Let agents read and write a file or a directory", Example: "files write /srv/shared --role coder",
			Long: "Let agents, tasks and servers read and write a file or a directory with all that is in it, for everybody, a role or\nan agent. ",
		}),
		filesPut(files.Hide, Op{
			Name: "files hide", Short: "Hide a file or a directory", Example: "files hide /srv/app/.env",
			Long: "Hide a file or a directory from agents, tasks and servers, wherever it lies and whatever else names it.\n",
		}),
		fileRule(files.Hide, "filerule", Op{Name: "files remove", Short: "End a rule", Confirm: ConfirmAsk, Done: "removed the rule about"},
			func(ctx context.Context, c *Call, r files.Rule) (files.Rule, error) {
				return c.Files.Remove(ctx, c.By, r.ID())
			}),
	}
}

func filesPut(effect files.Effect, o Op) *Op {
	o.Long += "Of rules about the same path hide wins over write, and write over read. They hold from the next start of a process\n" +
		"on, not for an open one. The engine's own files and agents' homes can't be given."
	o.Undo, o.Done = "files remove", "from the next start agents may "+string(effect)
	if effect == files.Hide {
		o.Done = "hidden from the next start on:"
	}
	return fileRule(effect, "file", o, func(ctx context.Context, c *Call, r files.Rule) (files.Rule, error) {
		made, _, err := c.Files.Put(ctx, c.By, r)
		return made, err
	})
}

// fileRule makes an operation on a rule about a path of the engine's machine.
func fileRule(effect files.Effect, source string, o Op, do func(context.Context, *Call, files.Rule) (files.Rule, error)) *Op {
	var w whom
	var path string
	var rule files.Rule
	o.Role = Admin
	o.Params = append([]*Param{{Name: "path", About: "PATH", Arg: true, Need: true, Into: &path, From: source, Names: reach.Path}}, w.params()...)
	o.Check = func(c *Call) (err error) {
		if c.Remote {
			return core.Errorf(core.Denied, "path: what is on the machine of the data file can't be named from another one").With("field", "path")
		}
		if !strings.HasPrefix(path, "~") {
			path = c.path(path)
		}
		if rule, err = files.NewRule(effect, path); err != nil {
			return err
		}
		rule.Role, rule.Agent = w.role, w.agent
		return rule.Check()
	}
	return define(o, func(ctx context.Context, c *Call) (files.Rule, error) { return do(ctx, c, rule) })
}
