package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/fleet"
	"swarmdeck/ui/graph"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// dagTimeline lists what happened to a subject on one axis.
func (t *tree) dagTimeline() *cobra.Command {
	subject := ""
	return lists(t, spec{
		use: "timeline SUBJECT", short: "List all that happened in a run, or to a task, agent or session, the oldest first", effect: Reads,
		args: []string{"recorded"},
		long: "List all that happened in a run, or to a task, agent or session, the oldest first: messages, model requests, calls,\n" +
			"results, decisions, interruptions, each with how long what it begins or ends took. SUBJECT is run:ID, task:ID,\n" +
			"agent:NAME or session:ID; a bare NAME is the newest run of that agent. In the cockpit: key H, or open timeline SUBJECT.",
		example: "dag timeline agent:ada --page 2\ndag timeline task:tk_… --kind tool_call",
		flags:   func(f *pflag.FlagSet) { source(f, "kind", "enum:"+strings.Join(core.Strings(dag.Kinds()...), ",")) },
		check: func(_ *call, args []string) error {
			subject = args[0]
			if !strings.Contains(subject, ":") {
				return nil // the record knows the agents
			}
			return new(dag.Query).Subject(subject)
		},
	}, nil, momentColumns,
		func(c *call, f core.Filter) (core.Page[dag.Moment], error) {
			q := dag.Query{Filter: f, Short: c.g.Output != "json"}
			if err := c.eng.DAG.Subject(c.ctx, c.by.Tenant, subject, &q); err != nil {
				return core.Page[dag.Moment]{}, err
			}
			return c.eng.DAG.Timeline(c.ctx, c.by.Tenant, q)
		})
}

// liveSubjects offers agents and tasks that a timeline may be of.
func liveSubjects(t *tree, c *call, eng *engine.Engine, tenant string) (all []Candidate) {
	agents, err := eng.Fleet.Agents(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	all = candidates(agents.Items, err, func(a fleet.Agent) Candidate { return Candidate{"agent:" + a.Name, a.Role} })
	for _, of := range t.liveTasks(c, eng, tenant, "") {
		all = append(all, Candidate{"task:" + of.Text, of.Help})
	}
	return all
}

func momentColumns(c *call) []column[dag.Moment] {
	type M = dag.Moment
	return []column[M]{
		{title: "TS", text: func(m M) string { return m.Event.TS.Time().Format("2006-01-02T15:04:05.000Z07:00") }},
		{title: "KIND", text: func(m M) string { return string(m.Event.Kind) }},
		{title: "STATUS", text: func(m M) string { return m.Status }},
		{title: "MS", right: true, text: func(m M) string {
			if ms, ok := m.Took(); ok {
				return strconv.FormatInt(ms, 10)
			}
			return ""
		}},
		{title: "AGENT", most: 20, text: func(m M) string { return m.Event.AgentID }},
		{title: "EVENT", most: briefID, text: func(m M) string { return m.Event.EventID }},
		{title: "RUN", wide: true, text: func(m M) string { return m.Event.RunID }},
		{title: "TASK", wide: true, text: func(m M) string { return m.Event.TaskID }},
		{title: "WHAT", most: 60, text: func(m M) string {
			if m.Message != nil {
				return m.Message.Brief()
			}
			return m.Brief()
		}},
	}
}

// drawing is what `dag graph` is asked for.
type drawing struct {
	depth, most int
	size        string
	w, h        int
}

// Bounds of a lineage drawn as text.
const (
	leastGraphW, leastGraphH = 40, 10
	mostGraphW, mostGraphH   = 400, 400
)

func (t *tree) dagGraph() *cobra.Command {
	var d drawing
	return t.command(spec{
		use: "graph NODE", short: "Draw what led to a node and what came of it", effect: Reads, args: []string{"record"},
		long: "Draw what led to a node, to its left, and what came of it, to its right, as boxes and lines; of an agent its runs,\n" +
			"forks and subagents too. A node is an event, TYPE:ID, or an id that only one node has. In the cockpit: key v.",
		example: "dag graph 3f1c09aa --size 160x40\ndag graph Agent:ada",
		flags: func(f *pflag.FlagSet) {
			f.IntVar(&d.depth, "depth", 3, "at most `N` steps each way, 1-20")
			f.IntVar(&d.most, "most", 60, "at most `N` nodes each way, 1-500")
			f.StringVar(&d.size, "size", "80x24", "size of the picture, `WxH` cells")
		},
		check: func(*call, []string) error { return d.read() },
		run: func(c *call, args []string) error {
			ref, err := c.eng.DAG.FindNode(c.ctx, c.by.Tenant, args[0])
			if err != nil {
				return err
			}
			g, err := c.eng.DAG.Around(c.ctx, c.by.Tenant, dag.GraphQuery{Node: ref, Depth: d.depth, Most: d.most})
			if err != nil {
				return err
			}
			return c.print(g, func(w io.Writer) error { return d.draw(c, w, g) })
		},
	})
}

func (d *drawing) read() error {
	w, h, _ := strings.Cut(d.size, "x")
	var bad error
	if d.w, bad = strconv.Atoi(w); bad == nil {
		d.h, bad = strconv.Atoi(h)
	}
	if bad != nil || d.w < leastGraphW || d.w > mostGraphW || d.h < leastGraphH || d.h > mostGraphH {
		return core.Invalid("size", d.size, fmt.Sprintf("WxH from %dx%d to %dx%d", leastGraphW, leastGraphH, mostGraphW, mostGraphH))
	}
	return nil
}

func (d *drawing) draw(c *call, w io.Writer, g dag.Graph) error {
	if c.g.Accessible { // a list of its edges
		for _, e := range g.Edges {
			if _, err := fmt.Fprintln(w, term.Clean(graph.Edge(g, e))); err != nil {
				return err
			}
		}
		return nil
	}
	canvas := screen.New(d.w, d.h)
	if c.g.ASCII {
		canvas.SetGlyphs(screen.ASCII())
	}
	var m graph.Map
	m.Set(g)
	m.Draw(canvas, c.now(), false)
	rows := canvas.Plain()
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	if g.More {
		rows = append(rows, "there is more: see --depth and --most")
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, row); err != nil {
			return err
		}
	}
	return nil
}
