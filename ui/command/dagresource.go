package command

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
)

func (t *tree) dagResource() *cobra.Command {
	return t.group("resource", "What agents work on: attach it, keep its state, make it again",
		lists(t, spec{
			use: "list", short: "List what is looked after", effect: Reads,
			long: "List what is looked after: what was attached to an agent, and the directory that each agent works in from its\n" +
				"first run on. --kind is a kind of resource.",
		}, nil, keptColumns, func(c *call, f core.Filter) (core.Page[resource.View], error) {
			return c.eng.Resources.List(c.ctx, c.by.Tenant, f)
		}),
		t.command(spec{
			use: "show ID", short: "Show a resource, what can be done with it and who has it", effect: Reads, args: []string{"resource"},
			run: shows(func(c *call, id string) (resource.View, error) { return c.eng.Resources.Show(c.ctx, c.by.Tenant, id) }),
		}),
		t.resourceAttach(),
		t.command(spec{
			use: "detach AGENT ID", short: "Record that an agent has a resource no longer", effect: Writes, args: []string{"agent", "resource"},
			run: func(c *call, args []string) error {
				v, err := c.eng.Resources.Detach(c.ctx, c.by, args[0], args[1])
				if err != nil {
					return err
				}
				return record(c, v, keptColumns(c))
			},
		}),
		t.command(spec{
			use: "probe ID", short: "Look whether a resource is there, and record it", effect: Writes, args: []string{"resource"},
			run: changes(keptColumns, func(c *call, id string) (resource.View, error) { return c.eng.Resources.Probe(c.ctx, c.by, id) }),
		}),
		t.command(spec{
			use: "snapshot ID", short: "Keep the state that a resource has now", effect: Writes, args: []string{"resource"},
			check: func(c *call, _ []string) error { return c.activate() },
			run:   changes(snapshotColumns, func(c *call, id string) (resource.Shown, error) { return c.eng.Resources.Snapshot(c.ctx, c.by, id) }),
		}),
		t.resourceSnapshots(),
		t.resourceRestore(),
	)
}

func (t *tree) resourceAttach() *cobra.Command {
	var a resource.Attachment
	var mode string
	return t.command(spec{
		use: "attach AGENT TARGET", short: "Look after something that an agent works on", effect: Writes, args: []string{"agent", "file"},
		long: "Look after something that an agent works on. TARGET is\n" +
			"PATH                   a file or directory, or a git worktree\n" +
			"files:PATH, git:PATH   the same, kept as files, or by git\n" +
			"process:PID            a process: it can be held, not restored\n" +
			"docker:volume/NAME     a volume, container/NAME or image/NAME of docker\n" +
			"Of files that the agent may write the state is kept before each of its tool calls.",
		example: "dag resource attach ada /srv/data --mode ro\ndag resource attach ada process:4711",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &mode, "mode", "", "rw", "how the agent has it", "ro", "rw")
			f.StringVar(&a.Mount, "mount", "", "`PATH` at which the agent sees it")
		},
		run: func(c *call, args []string) error {
			a.AgentID, a.Target, a.Mode = args[0], c.target(args[1]), dag.Mode(mode)
			v, err := c.eng.Resources.Attach(c.ctx, c.by, a)
			if err != nil {
				return err
			}
			return record(c, v, keptColumns(c))
		},
	})
}

// target makes a path in a target absolute: the engine may run elsewhere.
func (c *call) target(text string) string {
	word, rest, ok := strings.Cut(text, ":")
	switch {
	case ok && (word == "files" || word == "git"):
		return word + ":" + c.env.path(rest)
	case ok && !strings.Contains(word, "/"):
		return text
	}
	return c.env.path(text)
}

func (t *tree) resourceSnapshots() *cobra.Command {
	var id string
	return lists(t, spec{
		use: "snapshots ID", short: "List the states of a resource that are kept, newest first", effect: Reads, args: []string{"resource"},
		check: func(_ *call, args []string) error {
			id = args[0]
			return nil
		},
	}, nil, snapshotColumns, func(c *call, f core.Filter) (core.Page[resource.Shown], error) {
		return c.eng.Resources.Snapshots(c.ctx, c.by.Tenant, id, f)
	})
}

func (t *tree) resourceRestore() *cobra.Command {
	var to string
	var yes bool
	return t.command(spec{
		use: "restore SNAPSHOT", short: "Make the state of a snapshot again", effect: Destroys, confirm: ConfirmAsk, args: []string{"snapshot"},
		long: "Make the state of a snapshot again: with --to as a new resource, else in the place of the resource itself, whose\n" +
			"present state goes. What agents work in meanwhile is not replaced.",
		example: "dag resource restore snap-12ab --to /srv/again\ndag resource restore snap-12ab --yes",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&to, "to", "", "make a new `PATH`, volume or image")
			f.BoolVar(&yes, "yes", false, "the present state may go")
			source(f, "to", "file")
		},
		check: func(c *call, args []string) error {
			if to == "" && !yes {
				return usage("yes", "dag resource restore: the present state is replaced; say --yes to restore %q in its place, or --to PATH", core.Clip(args[0]))
			}
			return c.activate()
		},
		run: func(c *call, args []string) error {
			dest := to
			if strings.Contains(dest, "/") {
				dest = c.env.path(dest)
			}
			v, err := c.eng.Resources.Restore(c.ctx, c.by, args[0], dest)
			if err != nil {
				return err
			}
			return record(c, v, keptColumns(c))
		},
	})
}

func keptColumns(c *call) []column[resource.View] {
	type V = resource.View
	return []column[V]{
		{title: "RESOURCE", most: 24, text: func(v V) string { return v.ID }},
		{title: "KIND", text: func(v V) string { return string(v.Kind) }},
		{title: "BY", text: func(v V) string { return v.Driver }},
		{title: "ATTACHED", most: 40, text: func(v V) string {
			var all []string
			for _, h := range v.Holders {
				all = append(all, h.AgentID+":"+string(h.Mode))
			}
			return cmp.Or(strings.Join(all, " "), "-")
		}},
		{title: "CAN", most: 30, text: func(v V) string {
			var all []string
			for _, can := range v.Capabilities {
				all = append(all, string(can))
			}
			return cmp.Or(strings.Join(all, ","), "-")
		}},
		{title: "LIVENESS", text: func(v V) string { return string(v.Liveness.Status) }},
		{title: "SNAPSHOTS", right: true, text: func(v V) string { return count(v.Snapshots) }},
		{title: "NAME", most: 60, text: func(v V) string { return v.Name }},
	}
}

func snapshotColumns(c *call) []column[resource.Shown] {
	type S = resource.Shown
	return []column[S]{
		{title: "SNAPSHOT", most: 24, text: func(s S) string { return s.ID }},
		{title: "RESOURCE", most: 24, text: func(s S) string { return s.ResourceRef }},
		{title: "METHOD", text: func(s S) string { return s.Method }},
		{title: "AGENT", most: 20, text: func(s S) string { return s.AgentID }},
		{title: "AGE", right: true, text: func(s S) string { return c.age(s.CreatedAt.Time()) }},
		{title: "BYTES", right: true, text: func(s S) string {
			if s.SizeBytes == nil {
				return ""
			}
			return count(*s.SizeBytes)
		}},
		{title: "STATE", most: 20, text: func(s S) string { return s.ExternalRef.ID }},
		{title: "NOTES", most: 60, text: func(s S) string { return strings.Join(s.Notes, "; ") }},
	}
}

// liveResources offers what is looked after, and the snapshots of it.
func liveResources(c *call, eng *engine.Engine, tenant, kind string) []Candidate {
	page, err := eng.Resources.List(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	if kind == "resource" {
		return candidates(page.Items, err, func(v resource.View) Candidate { return Candidate{v.ID, v.Name} })
	}
	var all []Candidate
	for _, v := range page.Items {
		snaps, err := eng.Resources.Snapshots(c.ctx, tenant, v.ID, core.Filter{Size: 20})
		all = append(all, candidates(snaps.Items, err, func(s resource.Shown) Candidate { return Candidate{s.ID, v.Name} })...)
	}
	return all
}
