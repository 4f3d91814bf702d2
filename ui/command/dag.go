package command

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

func (t *tree) dag() *cobra.Command {
	return t.group("dag", "The agents' canonical record: events, nodes and edges",
		t.dagEvents(),
		t.command(spec{
			use: "show EVENT", short: "Show an event with its edges, or a node with what was stated about it", effect: Reads, args: []string{"record"},
			long: "Show an event with its edges. An event is named by its id or the first 8 digits or more of it; anything\n" +
				"else is a node, TYPE:ID or an id that only one node has: shown with what was stated about it.",
			example: "dag show 3f1c09aa\ndag show Resource:vol-1",
			run:     dagShow,
		}),
		t.dagEmit(),
		t.dagTimeline(),
		t.dagGraph(),
		t.dagLineage(),
		t.dagCalls(),
		timed(t, "resources", "List the resources that were there at a time, with their owners and mounts", resourceColumns,
			func(c *call, q dag.TimeQuery) (core.Page[dag.ResourceAt], error) {
				return c.eng.DAG.Resources(c.ctx, c.by.Tenant, q)
			}),
		timed(t, "mounts", "List which resources were in whose hands at a time", mountColumns,
			func(c *call, q dag.TimeQuery) (core.Page[dag.Mount], error) {
				return c.eng.DAG.Mounts(c.ctx, c.by.Tenant, q)
			}),
		lists(t, spec{use: "policies", short: "List what policies went through: proposed, tested, activated …, newest first", effect: Reads}, nil, policyChangeColumns,
			func(c *call, f core.Filter) (core.Page[dag.PolicyChange], error) {
				return c.eng.DAG.Policies(c.ctx, c.by.Tenant, f)
			}),
		t.dagForks(),
		t.dagIntents(),
		t.dagIntent(),
		t.dagFork(),
		t.dagResource(),
		t.command(spec{
			use: "at EVENT", short: "Show what was so right after an event: its run, agent, task and session", effect: Reads, args: []string{"record"},
			run: func(c *call, args []string) error {
				id, err := c.eng.DAG.Find(c.ctx, c.by.Tenant, args[0])
				if err != nil {
					return err
				}
				state, err := c.eng.DAG.At(c.ctx, c.by.Tenant, id)
				if err != nil {
					return err
				}
				return c.show(state)
			},
		}),
		t.command(spec{
			use: "export FORMAT DEST", short: "Write the whole record to a file or directory that does not exist yet", effect: Reads,
			args: []string{formatSource, "file"},
			long: "Write the whole record to a place that does not exist yet. All formats can be imported again:\n" +
				"git     a repository: a commit for each part of a run, a branch for each agent and fork\n" +
				"sqlite  a database: the tables events, edges and nodes, the views runs, calls and messages\n" +
				"car     IPLD: the digest in the CID of an event is its id\n" +
				"jsonl   an event a line",
			example: "dag export sqlite record.db",
			check:   func(c *call, _ []string) error { return c.makesFile() },
			run: func(c *call, args []string) error {
				done, err := c.eng.DAG.Export(c.ctx, c.by.Tenant, args[0], c.env.path(args[1]))
				if err != nil {
					return outError("dest", args[1], err)
				}
				return c.say(done, "exported %d events to %s", done.Events, args[1])
			},
		}),
		t.command(spec{
			use: "import FORMAT SRC", short: "Take in a record that was exported; what is here already stays", effect: Writes,
			args: []string{formatSource, "file"},
			long: "Take in a record that was exported. All of it is looked at first: when an event was changed, added or\n" +
				"removed, nothing is taken in. Importing twice changes nothing.",
			run: func(c *call, args []string) error {
				done, err := c.eng.DAG.Import(c.ctx, c.by, args[0], c.env.path(args[1]))
				if err != nil {
					return inError("src", args[1], err)
				}
				return c.say(done, "imported %d events from %s, %d of them new", done.Events, args[1], done.New)
			},
		}),
	)
}

const formatSource = "enum:git,sqlite,car,jsonl"

func (t *tree) dagEvents() *cobra.Command {
	var q dag.Query
	var task string
	return lists(t, spec{
		use: "events", short: "List the events, newest first; those of one run in their order", effect: Reads,
		long: "List the events, newest first; with --run those of one run in their order. --kind is an event's kind,\n" +
			"--status the status, outcome or exit that it tells of.",
		example: "dag events --run 5f0c8d1e\ndag events --kind tool_call --agent ada --since 1h",
		flags: func(f *pflag.FlagSet) {
			runFlag(f, &q.Run)
			f.StringVar(&task, "task", "", "only of this task `ID`")
			f.StringVar(&q.Correlation, "correlation", "", "only with this correlation `ID`")
			source(f, "task", "task")
			source(f, "kind", "enum:"+strings.Join(core.Strings(dag.Kinds()...), ","))
		},
	}, nil, func(c *call) []column[dag.Recorded] {
		if q.Run != "" {
			return runColumns(c)
		}
		return recordedColumns(c)
	},
		func(c *call, f core.Filter) (core.Page[dag.Recorded], error) {
			q.Filter = f
			q.Task = task
			return c.eng.DAG.Events(c.ctx, c.by.Tenant, q)
		})
}

func runFlag(f *pflag.FlagSet, run *string) {
	f.StringVar(run, "run", "", "only of this run `ID`")
	source(f, "run", "run")
}

func dagShow(c *call, args []string) error {
	ref, err := c.eng.DAG.FindNode(c.ctx, c.by.Tenant, args[0])
	if err != nil {
		return err
	}
	if ref.Type == dag.TypeEvent {
		found, err := c.eng.DAG.Get(c.ctx, c.by.Tenant, ref.ID)
		if err != nil {
			return err
		}
		return c.show(found)
	}
	found, err := c.eng.DAG.Node(c.ctx, c.by.Tenant, ref)
	if err != nil {
		return err
	}
	return c.show(found)
}

func (t *tree) dagEmit() *cobra.Command {
	var events []dag.Event
	return t.command(spec{
		use: "emit JSON", short: "Record an event, or several: one JSON object a line", effect: Writes,
		long: "Record an event with the model's fields, or several, one JSON object a line: all or none. The event_id\n" +
			"follows from the event; one that is given must be that. Emitting an event again changes nothing.",
		example: `dag emit '{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada","reason":"user"}'` + "\ndag emit @events.jsonl",
		check: func(c *call, args []string) error {
			data, err := c.text("event", args[0])
			if err != nil {
				return err
			}
			events, err = parseEvents(data)
			return err
		},
		run: func(c *call, _ []string) error {
			all, err := c.eng.DAG.Emit(c.ctx, c.by, events...)
			if err != nil {
				return err
			}
			return list(c, core.Page[dag.Recorded]{Items: all}, recordedColumns(c))
		},
	})
}

// parseEvents reads one event, or one a line.
func parseEvents(data []byte) (all []dag.Event, err error) {
	if e, err := dag.Parse(data); err == nil || !bytes.Contains(bytes.TrimSpace(data), []byte("\n")) {
		return []dag.Event{e}, err
	}
	if core.Raw(data).IsValid() { // one object over several lines, with mistakes
		_, err := dag.Parse(data)
		return nil, err
	}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := dag.Parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, e)
	}
	return all, nil
}

func (t *tree) dagLineage() *cobra.Command {
	var q dag.LineageQuery
	return t.command(spec{
		use: "lineage NODE", short: "List what led to a node, nearest first", effect: Reads, args: []string{"record"},
		long: "List what led to a node, nearest first: what it was derived from, the event that made it, what that\n" +
			"consumed, the call behind a result. A node is an event, TYPE:ID, or an id that only one node has.",
		example: "dag lineage Message:m-2 --depth 3",
		flags: func(f *pflag.FlagSet) {
			f.IntVar(&q.Depth, "depth", 0, "at most `N` steps away, 1-100 (default 10)")
			f.IntVar(&q.Most, "most", 0, "at most `N` steps in all, 1-10000 (default 1000)")
			f.BoolVar(&q.Down, "down", false, "what came of it instead")
		},
		run: func(c *call, args []string) (err error) {
			if q.Node, err = c.eng.DAG.FindNode(c.ctx, c.by.Tenant, args[0]); err != nil {
				return err
			}
			found, err := c.eng.DAG.Lineage(c.ctx, c.by.Tenant, q)
			if err != nil {
				return err
			}
			if err := list(c, core.Page[dag.Step]{Items: found.Steps}, stepColumns()); err != nil || !found.More || c.g.Output == "json" {
				return err
			}
			return c.say(nil, "there is more: see --depth and --most")
		},
	})
}

func (t *tree) dagCalls() *cobra.Command {
	var run string
	return lists(t, spec{
		use: "calls", short: "List the tool calls with their results, newest first; those of one run in their order", effect: Reads,
		flags: func(f *pflag.FlagSet) { runFlag(f, &run) },
	}, dag.CallStatuses(), dagCallColumns,
		func(c *call, f core.Filter) (core.Page[dag.Call], error) {
			return c.eng.DAG.Calls(c.ctx, c.by.Tenant, dag.Query{Filter: f, Run: run})
		})
}

// timed makes a command that lists what held at a time.
func timed[T any](t *tree, use, short string, cols func(*call) []column[T], page func(*call, dag.TimeQuery) (core.Page[T], error)) *cobra.Command {
	var at string
	var q dag.TimeQuery
	return lists(t, spec{
		use: use, short: short, effect: Reads,
		example: "dag " + use + " --at 2026-01-02T03:04:05Z",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&at, "at", "", "at this `TIME` (RFC 3339, or 15m for that long ago; default now)")
			if use == "mounts" {
				runFlag(f, &q.Run)
			}
		},
		check: func(c *call, _ []string) error {
			when, err := c.instant("at", at)
			if !when.IsZero() {
				q.At = dag.At(when)
			}
			return err
		},
	}, nil, cols, func(c *call, f core.Filter) (core.Page[T], error) {
		q.Filter = f
		return page(c, q)
	})
}

func (t *tree) dagForks() *cobra.Command {
	var of string
	return lists(t, spec{
		use: "forks", short: "List the forks of agents and their subagents, newest first", effect: Reads,
		long: "List the forks of agents and their subagents, newest first; with --of where one agent or branch\n" +
			"(AGENT/BRANCH) comes from, nearest first.",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&of, "of", "", "the ancestry of this `AGENT` or branch")
			source(f, "of", "agent")
		},
	}, nil, forkColumns, func(c *call, f core.Filter) (core.Page[forkRow], error) {
		if of != "" {
			all, err := c.eng.DAG.Ancestry(c.ctx, c.by.Tenant, of)
			var rows []forkRow
			for i := range all {
				rows = append(rows, forkRow{ancestor: &all[i]})
			}
			return core.Pick(rows, err, f, func(r forkRow) core.Traits {
				return core.Traits{At: r.ancestor.TS.Time(), Text: r.ancestor.Node.String(), Kind: string(r.ancestor.Edge)}
			})
		}
		found, err := c.eng.DAG.Forks(c.ctx, c.by.Tenant, f)
		page := core.Page[forkRow]{Info: found.Info}
		for i := range found.Items {
			page.Items = append(page.Items, forkRow{fork: &found.Items[i]})
		}
		return page, err
	})
}

// forkRow is a fork, or a step of an ancestry.
type forkRow struct {
	fork     *dag.Fork
	ancestor *dag.Ancestor
}

// MarshalJSON implements json.Marshaler.
func (r forkRow) MarshalJSON() ([]byte, error) {
	if r.fork != nil {
		return core.Encode(r.fork)
	}
	return core.Encode(r.ancestor)
}

// inError says what an import could not read.
func inError(field, path string, err error) error {
	if storeFault(err) {
		return fmt.Errorf("%s: %w", field, err)
	}
	if refused := core.AsError(err); refused.Code != core.Internal {
		return inFile(err)
	}
	return fileError(field, path, err)
}
