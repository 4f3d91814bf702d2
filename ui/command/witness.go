package command

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/witness"
)

func (t *tree) auditWitness() *cobra.Command {
	return t.group("witness", "Where checkpoints of the log are published by themselves",
		t.witnessAdd(),
		lists(t, spec{use: "list", short: "List the witnesses, what they hold and what went wrong", effect: Reads}, nil, witnessColumns,
			func(c *call, f core.Filter) (core.Page[witness.Status], error) {
				all, err := c.eng.Witnesses.List(c.ctx, c.by.Tenant)
				return core.Pick(all, err, f, func(w witness.Status) core.Traits {
					return core.Traits{At: w.CreatedAt, Kind: w.Kind, Text: strings.Join([]string{w.Name, w.Path, w.LastError, Join(w.Command)}, " ")}
				})
			}),
		t.command(spec{
			use: "remove NAME", short: "Publish there no more; what it holds stays", effect: Destroys, role: Admin, confirm: ConfirmAsk, args: []string{"witness"},
			run: func(c *call, args []string) error {
				w, err := c.eng.Witnesses.Remove(c.ctx, c.by, args[0])
				if err != nil {
					return err
				}
				return c.say(map[string]string{"name": w.Name, "status": "removed"}, "nothing is published to %s any more", w.Name)
			},
		}),
	)
}

func (t *tree) witnessAdd() *cobra.Command {
	var w witness.Witness
	var every time.Duration
	return t.command(spec{
		use: "add [file|git] PATH | command -- COMMAND…", short: "Publish the log's checkpoints to a file, a git repository or a command", effect: Writes, role: Admin, anyArg: true,
		long: "Publish the newest checkpoint of the log elsewhere, by itself, whenever the log has grown, at most once in --every and once\n" +
			"more when the engine ends. A file gets a line for each, at its end. A git repository is made in a directory that is not\n" +
			"there yet, and gets a commit for each on a branch named after the tenant; fetch from it. A command gets the line of a file\n" +
			"on stdin, and exits 0 once it is kept. What fails is tried again. Keep a witness where whoever can write the data file\n" +
			"can't write: what it holds then shows a log that was put back or rewritten (audit verify).",
		example: "audit witness add /mnt/elsewhere/swarmdeck.log\naudit witness add git /srv/witness.git --every 10m\n" +
			"audit witness add command --name far -- ssh witness@far.example 'cat >> swarmdeck.log'",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&w.Name, "name", "", "`NAME` of the witness (default its kind)")
			spanVar(f, &every, "every", "at most one checkpoint in this `TIME`, 1s-24h (default 1m)")
		},
		check: func(c *call, args []string) error {
			if dash := c.flags.ArgsLenAtDash(); dash >= 0 {
				args, w.Command = args[:dash], args[dash:]
			}
			switch n := len(args); {
			case len(w.Command) > 0 && (n == 0 || n == 1 && args[0] == witness.Command):
				w.Kind = witness.Command
			case len(w.Command) == 0 && n == 1 && args[0] != witness.Command && args[0] != witness.File && args[0] != witness.Git:
				w.Kind, w.Path = witness.File, args[0]
			case len(w.Command) == 0 && n == 2 && (args[0] == witness.File || args[0] == witness.Git):
				w.Kind, w.Path = args[0], args[1]
			default:
				return usage("target", "audit witness add: want a PATH, file PATH, git DIR, or command -- COMMAND…")
			}
			if c.flags.Changed("every") {
				if w.EveryS = int(every / time.Second); w.EveryS == 0 {
					w.EveryS = -1 // 0 would be the default
				}
			}
			if w.Path != "" {
				if err := c.namesPlace(&w.Path); err != nil {
					return err
				}
			}
			return w.Check()
		},
		run: func(c *call, _ []string) error {
			made, _, err := c.eng.Witnesses.Add(c.ctx, c.by, w)
			if err != nil {
				return err
			}
			return record(c, witness.Status{Witness: made}, witnessColumns(c))
		},
	})
}

// namesPlace makes the path of a place that the engine writes absolute. It is
// one of this machine, and none of the engine's own.
func (c *call) namesPlace(path *string) error {
	if c.env.Abroad {
		return onlyThere(commandPath(c.cmd), "path")
	}
	given := *path
	*path = c.env.path(given)
	own, err := c.own()
	if err == nil && own.Check(*path) != nil {
		err = core.Errorf(core.Denied, "path: %s is one of the engine's own files", core.Clip(given)).With("field", "path").With("value", core.Clip(given))
	}
	return err
}

// compare holds the log against a file that a witness wrote.
func (c *call) compare(path string, report *audit.Report) error {
	in, err := c.large("witness", path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := c.eng.Witnesses.CompareFile(c.ctx, c.by.Tenant, path, witness.Read(in), report); err != nil {
		return inFile(err)
	}
	return nil
}

// large opens a file that may be larger than an argument.
func (c *call) large(field, path string) (io.ReadCloser, error) {
	if _, brought := c.env.Files[path]; path == "-" || brought || c.env.Abroad {
		data, err := c.file(field, path)
		return io.NopCloser(bytes.NewReader(data)), err
	}
	f, err := c.openFile(path)
	if err != nil {
		return nil, fileError(field, path, err)
	}
	return f, nil
}

func witnessColumns(c *call) []column[witness.Status] {
	type W = witness.Status
	return []column[W]{
		{title: "WITNESS", text: func(w W) string { return w.Name }},
		{title: "KIND", text: func(w W) string { return w.Kind }},
		{title: "TO", most: 60, text: func(w W) string { return w.Path + Join(w.Command) }},
		{title: "HOLDS", right: true, text: func(w W) string { return strconv.FormatInt(w.Published, 10) }},
		{title: "UP TO", right: true, text: func(w W) string { return strconv.FormatUint(w.Size, 10) }},
		{title: "LAG", right: true, text: func(w W) string { return strconv.FormatUint(w.Lag, 10) }},
		{title: "STATE", most: 80, text: func(w W) string {
			switch {
			case w.Failing:
				return "failing: " + w.LastError
			case w.PublishedAt.IsZero():
				return "nothing published yet"
			}
			return "published " + c.age(w.PublishedAt) + " ago"
		}},
		{title: "LAST ERROR", wide: true, text: func(w W) string {
			if w.LastError == "" {
				return ""
			}
			return c.age(w.FailedAt) + " ago: " + w.LastError
		}},
	}
}

func liveWitnesses(c *call, eng *engine.Engine, tenant string) []Candidate {
	all, err := eng.Witnesses.List(c.ctx, tenant)
	return candidates(all, err, func(w witness.Status) Candidate { return Candidate{w.Name, w.Path + Join(w.Command)} })
}
