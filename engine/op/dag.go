package op

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
)

func dags() []*Op {
	return append(append([]*Op{
		dagEvents(),
		show(Op{
			Name: "dag show", Short: "Show an event with its edges, or a node with what was stated about it", Example: "dag show 3f1c09aa\ndag show Resource:vol-1",
			Long: "Show an event with its edges. An event is named by its id or the first 8 digits or more of it; anything\n" +
				"else is a node, TYPE:ID or an id that only one node has: shown with what was stated about it.",
		}, arg("EVENT", "record"), func(ctx context.Context, c *Call, name string) (Either[dag.Detail, dag.NodeInfo], error) {
			ref, err := c.DAG.FindNode(ctx, c.By.Tenant, name)
			if err != nil {
				return Either[dag.Detail, dag.NodeInfo]{}, err
			}
			if ref.Type == dag.TypeEvent {
				return one[dag.Detail, dag.NodeInfo](c.DAG.Get(ctx, c.By.Tenant, ref.ID))
			}
			return other[dag.Detail](c.DAG.Node(ctx, c.By.Tenant, ref))
		}),
		dagEmit(),
		dagTimeline(),
		dagCompare(),
		dagReplay(),
		dagGraph(),
		dagLineage(),
		dagCalls(),
		dagTimed("resources", "List the resources that were there at a time, with their owners and mounts",
			byTenant(func(c *Call) tenantRead[dag.TimeQuery, core.Page[dag.ResourceAt]] { return c.DAG.Resources })),
		dagTimed("mounts", "List which resources were in whose hands at a time",
			byTenant(func(c *Call) tenantRead[dag.TimeQuery, core.Page[dag.Mount]] { return c.DAG.Mounts })),
		list(Op{Name: "dag policies", Short: "List what policies went through: proposed, tested, activated …, newest first"},
			byTenant(func(c *Call) tenantRead[core.Filter, core.Page[dag.PolicyChange]] { return c.DAG.Policies })),
		dagForks(),
		show(Op{Name: "dag at", Short: "Show what was so right after an event: its run, agent, task and session"}, arg("EVENT", "record"),
			func(ctx context.Context, c *Call, event string) (dag.State, error) {
				id, err := c.DAG.Find(ctx, c.By.Tenant, event)
				if err != nil {
					return dag.State{}, err
				}
				return c.DAG.At(ctx, c.By.Tenant, id)
			}),
		dagExport(),
		dagImport(),
	}, intents()...), resources()...)
}

// dagKinds complete a --kind of events.
func dagKinds() string { return "enum:" + strings.Join(core.Strings(dag.Kinds()...), ",") }

func ofRun(into *string) *Param { return flag(into, "run", "only of this run `ID`").from("run") }

func dagEvents() *Op {
	var q dag.Query
	var task string
	return list(Op{
		Name: "dag events", Short: "List the events, newest first; those of one run in their order", Kinds: dagKinds(),
		Long: "List the events, newest first; with --run those of one run in their order. --kind is an event's kind,\n" +
			"--status the status, outcome or exit that it tells of.",
		Example: "dag events --run 5f0c8d1e\ndag events --kind tool_call --agent ada --since 1h",
		Params: []*Param{
			ofRun(&q.Run), flag(&task, "task", "only of this task `ID`").from("task"),
			flag(&q.Correlation, "correlation", "only with this correlation `ID`"),
		},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[dag.Recorded], error) {
		q.Filter, q.Task = f, task
		return c.DAG.Events(ctx, c.By.Tenant, q)
	})
}

func dagEmit() *Op {
	var text string
	var stream bool
	var events []dag.Event
	return define(Op{
		Name: "dag emit", Short: "Record an event, or several: one JSON object a line", Done: "recorded",
		Long: "Record an event with the model's fields, or up to 1000, one JSON object a line: all or none. The event_id\n" +
			"follows from the event; one that is given must be that. Emitting an event again changes nothing.\n" +
			"With --stream there may be any number, from @FILE or -: they are taken in as they come, by batches of up to\n" +
			"1000 that are all or none each. The first mistake ends it; emitted again, a stream goes on where it ended.",
		Example: `dag emit '{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r-1","agent_id":"ada","reason":"user"}'` +
			"\ndag emit @events.jsonl\ndag emit --stream - < many.jsonl",
		Params: []*Param{place(&text, "JSON", ""), flag(&stream, "stream", "any number of events, by batches")},
		Check: func(c *Call) error {
			if stream {
				if text != "-" && !strings.HasPrefix(text, "@") {
					return usage("stream", "--stream: wants @FILE or -, got %q", core.Clip(text))
				}
				return nil
			}
			data, err := c.Read("event", text)
			if err == nil {
				events, err = parseEvents(data)
			}
			if err == nil && len(events) > dag.MaxBatch {
				err = usage("event", "event: %d events; allowed: 1-%d, or any number with --stream", len(events), dag.MaxBatch)
			}
			return err
		},
	}, func(ctx context.Context, c *Call) (out Either[core.Page[dag.Recorded], Told[dag.Emitted]], err error) {
		if !stream {
			all, err := c.DAG.Emit(ctx, c.By, events...)
			return one[core.Page[dag.Recorded], Told[dag.Emitted]](core.Page[dag.Recorded]{Items: all}, err)
		}
		in, err := c.File("event", strings.TrimPrefix(text, "@"))
		if err != nil {
			return out, err
		}
		defer in.Close()
		done, err := c.DAG.EmitStream(ctx, c.By, dag.ReadEvents(in), c.counts())
		return other[core.Page[dag.Recorded]](told(done, fmt.Sprintf("recorded %d events, %d of them new", done.Events, done.New)), failed(err))
	})
}

// counts tells how far a stream of events is, each so many.
func (c *Call) counts() func(dag.Emitted) {
	const each = 20 * dag.MaxBatch
	next := uint64(each)
	return func(e dag.Emitted) {
		if e.Events >= next {
			next = e.Events - e.Events%each + each
			c.Progress(fmt.Sprintf("%d events, %d of them new …", e.Events, e.New))
		}
	}
}

// parseEvents reads one event, or one a line.
func parseEvents(data []byte) (all []dag.Event, err error) {
	if e, err := dag.Parse(data); err == nil || core.Raw(data).IsValid() || !bytes.Contains(bytes.TrimSpace(data), []byte("\n")) {
		return []dag.Event{e}, err // or one object over several lines, with mistakes
	}
	for e, err := range dag.ReadEvents(bytes.NewReader(data)) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func dagTimeline() *Op {
	var subject string
	var all bool
	return list(Op{
		Name: "dag timeline", Short: "List all that happened in a run, or to a task, agent or session, the oldest first", Kinds: dagKinds(),
		Long: "List all that happened in a run, or to a task, agent or session, the oldest first: messages, model requests, calls,\n" +
			"results, decisions, interruptions, each with how long what it begins or ends took. SUBJECT is run:ID, task:ID,\n" +
			"agent:NAME or session:ID; a bare NAME is the newest run of that agent. Bookkeeping, such as what was spent so far, is left\n" +
			"out without --all or --kind. In the cockpit: key H, or open timeline SUBJECT; key A shows all.",
		Example: "dag timeline agent:ada --page 2\ndag timeline task:tk_… --kind tool_call",
		Params:  []*Param{place(&subject, "SUBJECT", "recorded"), flag(&all, "all", "with the bookkeeping")},
		Check: func(*Call) error {
			if !strings.Contains(subject, ":") {
				return nil // the record knows the agents
			}
			return new(dag.Query).Subject(subject)
		},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[dag.Moment], error) {
		q := dag.Query{Filter: f, Short: c.Brief, All: all}
		if err := c.DAG.Subject(ctx, c.By.Tenant, subject, &q); err != nil {
			return core.Page[dag.Moment]{}, err
		}
		return c.DAG.Timeline(ctx, c.By.Tenant, q)
	})
}

func dagCompare() *Op {
	var a, b string
	return define(Op{
		Name: "dag compare", Short: "Show how what two runs, tasks or agents did differs: messages, calls, files, tokens and cost", Effect: Reads,
		Long: "Show how what two runs, tasks, agents or sessions did differs. Each is run:ID, task:ID, agent:NAME or session:ID; a\n" +
			"bare NAME is the newest run of that agent. Of an agent and its fork what came after the fork is compared. What both\n" +
			"said or called is put side by side; a call is the same when its tool and arguments are. Files are those of the\n" +
			"diffs in the record. Cost is what the tasks were billed. In the cockpit: mark two and press =, or open compare A B.",
		Example: "dag compare ada ada-2\ndag compare task:tk_… task:tk_…",
		Params:  []*Param{place(&a, "A", "recorded"), place(&b, "B", "recorded")},
	}, func(ctx context.Context, c *Call) (dag.Comparison, error) {
		return c.Compare(ctx, c.By.Tenant, a, b)
	})
}

func dagReplay() *Op {
	var subject, policy string
	var source []byte
	var all bool
	return define(Op{
		Name: "dag replay", Short: "Ask a policy about recorded tool calls, and list which answers would change", Effect: Reads,
		Long: "Ask a policy about the recorded tool calls of run:ID, task:ID, agent:NAME or session:ID, a bare NAME is the newest run\n" +
			"of that agent, and list those about which something else was decided, or nothing. Nothing is carried out. The\n" +
			"question is as it was where that was kept, else it is made of the record. Calls that came by an import can be\n" +
			"asked about too. See policy backtest for the last decisions of all.",
		Example: "dag replay ada --policy @rules.yaml\ndag replay task:tk_… --policy careful@3f1c",
		Params: []*Param{
			place(&subject, "SUBJECT", "recorded"),
			flag(&policy, "policy", "`POLICY`: its id, NAME or NAME@VERSION, default, or rules in @FILE (default the active one)").from("policy"),
			flag(&all, "all", "list also the calls whose answer stays"),
		},
		Check: func(c *Call) (err error) {
			if policy == "-" || strings.HasPrefix(policy, "@") {
				source, err = c.Read("policy", policy)
			}
			return err
		},
	}, func(ctx context.Context, c *Call) (engine.Replay, error) {
		var of *judge.Trial
		var err error
		if source != nil {
			of, err = c.Judge.TrialOf(c.By, source)
		} else {
			of, err = c.Judge.Trial(ctx, c.By, policy)
		}
		if err != nil {
			return engine.Replay{}, err
		}
		defer of.Close()
		return c.Replay(ctx, c.By, subject, of, all)
	})
}

func dagLineage() *Op {
	var q dag.LineageQuery
	return change(Op{
		Name: "dag lineage", Short: "List what led to a node, nearest first", Effect: Reads, Example: "dag lineage Message:m-2 --depth 3",
		Long: "List what led to a node, nearest first: what it was derived from, the event that made it, what that\n" +
			"consumed, the call behind a result. A node is an event, TYPE:ID, or an id that only one node has.",
		Params: []*Param{
			flag(&q.Depth, "depth", "at most `N` steps away, 1-100 (default 10)"),
			flag(&q.Most, "most", "at most `N` steps in all, 1-10000 (default 1000)"),
			flag(&q.Down, "down", "what came of it instead"),
		},
	}, arg("NODE", "record"), func(ctx context.Context, c *Call, name string) (_ dag.Lineage, err error) {
		if q.Node, err = c.DAG.FindNode(ctx, c.By.Tenant, name); err != nil {
			return dag.Lineage{}, err
		}
		return c.DAG.Lineage(ctx, c.By.Tenant, q)
	})
}

func dagCalls() *Op {
	var run string
	return list(Op{
		Name: "dag calls", Short: "List the tool calls with their results, newest first; those of one run in their order",
		Statuses: dag.CallStatuses(), Params: []*Param{ofRun(&run)},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[dag.Call], error) {
		return c.DAG.Calls(ctx, c.By.Tenant, dag.Query{Filter: f, Run: run})
	})
}

// dagTimed lists what held at a time.
func dagTimed[T any](what, short string, page func(context.Context, *Call, dag.TimeQuery) (core.Page[T], error)) *Op {
	var q dag.TimeQuery
	var at Ago
	o := Op{
		Name: "dag " + what, Short: short, Example: "dag " + what + " --at 2026-01-02T03:04:05Z",
		Params: []*Param{flag(&at, "at", "at this `TIME` (RFC 3339, or 15m for that long ago; default now)")},
	}
	if what == "mounts" {
		o.Params = append(o.Params, ofRun(&q.Run))
	}
	return list(o, func(ctx context.Context, c *Call, f core.Filter) (core.Page[T], error) {
		if q.Filter = f; !at.IsZero() {
			q.At = dag.At(at.Time)
		}
		return page(ctx, c, q)
	})
}

// ForkRow is a fork, or a step of an ancestry.
type ForkRow = Either[dag.Fork, dag.Ancestor]

func dagForks() *Op {
	var of string
	return list(Op{
		Name: "dag forks", Short: "List the forks of agents and their subagents, newest first",
		Long: "List the forks of agents and their subagents, newest first; with --of where one agent or branch\n" +
			"(AGENT/BRANCH) comes from, nearest first.",
		Params: []*Param{flag(&of, "of", "the ancestry of this `AGENT` or branch").from("agent")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[ForkRow], error) {
		var rows []ForkRow
		if of != "" {
			all, err := c.DAG.Ancestry(ctx, c.By.Tenant, of)
			for i := range all {
				rows = append(rows, ForkRow{Other: &all[i]})
			}
			return core.Pick(rows, err, f, func(r ForkRow) core.Traits {
				return core.Traits{At: r.Other.TS.Time(), Text: r.Other.Node.String(), Kind: string(r.Other.Edge)}
			})
		}
		found, err := c.DAG.Forks(ctx, c.By.Tenant, f)
		for i := range found.Items {
			rows = append(rows, ForkRow{One: &found.Items[i]})
		}
		return core.Page[ForkRow]{Items: rows, Info: found.Info}, err
	})
}
