package op

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// Work is the work in an agent's tree, as a list shows it.
type Work struct {
	tree.Look `json:",embed"`
	Status    fleet.AgentStatus `json:"agent_status"`
	// Viewed are the files that people have seen as they are, with who did; review show
	// has it.
	Viewed map[string][]string `json:"viewed,omitempty"`
}

// Patch is how two states differ, with the text in git's format.
type Patch struct {
	tree.Compared `json:",embed"`
	Text          string `json:"patch"`
}

func reviews() []*Op {
	agent := arg("AGENT", "tree")
	return []*Op{
		list(Op{Name: "review list", Looks: true, Short: "List what agents changed in their trees", Statuses: core.Strings(tree.Making, tree.Ready)},
			func(ctx context.Context, c *Call, f core.Filter) (page core.Page[Work], err error) {
				trees, err := core.Pick(c.Trees.All(c.By.Tenant), nil, f, func(t tree.Tree) core.Traits {
					return core.Traits{Status: string(t.Phase), Agent: t.Agent, At: t.CreatedAt, Text: t.Agent + " " + t.Source + " " + t.Base}
				})
				page.Info = trees.Info
				for i := 0; i < len(trees.Items) && err == nil; i++ {
					var w Work
					w, err = c.work(ctx, trees.Items[i].Agent)
					page.Items = append(page.Items, w)
				}
				return page, err
			}),
		show(Op{
			Name: "review show", Short: "Show what an agent changed in its tree, and what was said of it", Looks: true,
			Long: "Show what an agent changed in its tree since it was made or last taken over: the files with their lines, whether the\n" +
				"base has moved on, who else changed the same files, the remarks, and what the checks said.",
		}, agent, func(ctx context.Context, c *Call, name string) (w Work, err error) {
			if w, err = c.work(ctx, name); err == nil && w.Away != "" {
				err = c.Trees.Away(c.By.Tenant, name)
			}
			if err == nil {
				w.Viewed, err = c.viewed(ctx, name)
			}
			return w, err
		}),
		reviewRemark(),
		reviewUnremark(),
		reviewView("viewed", "Mark a file of an agent's work as viewed", "review unviewed", "viewed",
			"Mark a file of an agent's work as viewed by you, in the draft that everybody who reviews sees. It lapses when the\n"+
				"agent changes the file once more.", func(ctx context.Context, c *Call, agent, file string) (tree.Viewed, error) {
				return c.Trees.View(ctx, c.By, agent, file)
			}),
		reviewView("unviewed", "Take back that you have viewed a file", "review viewed", "not viewed any more:", "",
			func(ctx context.Context, c *Call, agent, file string) (tree.Viewed, error) {
				return c.Trees.Unview(ctx, c.By, agent, file)
			}),
		reviewFile(),
		reviewEdit(),
		reviewSend(),
		reviewAccept(),
		treeTask(Op{
			Name: "review check", Short: "Test the work in an agent's tree with the checks of its project", Done: "tests",
			Long: "Test the work in an agent's tree with the checks of its project (project checks), each in a cell, in a copy of the\n" +
				"tree as it is now. What they said stands in review show.",
			Example: "review check ada --wait",
		}, tree.KindCheck, func(*tree.Asks) []*Param { return nil }),
		reviewUpdate(),
	}
}

// TreeFile is a file of a tree with its content.
type TreeFile tree.Edited

// reviewFile and reviewEdit are how a person settles a file by hand.
func reviewFile() *Op {
	var agent, file string
	return define(Op{
		Name: "review file", Short: "Print a file of an agent's tree as it is now", Effect: Reads, Looks: true,
		Long:    "Print a file of an agent's tree as it is now, up to 1 MiB, to be edited: see review edit.",
		Example: "review file ada main.go",
		Params:  []*Param{place(&agent, "AGENT", "tree"), place(&file, "FILE", "").names(reach.Inside).bounds(1, 4096)},
	}, func(ctx context.Context, c *Call) (TreeFile, error) {
		e, err := c.Trees.File(ctx, c.By.Tenant, agent, file)
		return TreeFile(e), err
	})
}

func reviewEdit() *Op {
	var agent, file, state string
	content := File{Name: "-"}
	return define(Op{
		Name: "review edit", Short: "Write a file in an agent's tree", Done: "wrote",
		Long: "Write a file in the tree of an agent that is idle, to settle a conflict by hand or to mend a line. The cockpit opens\n" +
			"your editor on the file that a diff shows. The repository is not touched: merge takes the work over as ever.",
		Example: "review edit ada main.go --from-file main.go",
		Params: []*Param{
			place(&agent, "AGENT", "tree"), place(&file, "FILE", "").names(reach.Inside).bounds(1, 4096),
			flag(&content, "from-file", "`FILE` with the new content, - for stdin"),
			flag(&state, "state", "refuse if the file was changed since this `COMMIT`, as review file has it").bounds(1, 64),
		},
	}, func(ctx context.Context, c *Call) (tree.Edited, error) {
		return c.Trees.Edit(ctx, c.By, agent, file, state, content.Data)
	})
}

func (c *Call) work(ctx context.Context, agent string) (w Work, err error) {
	w.Look, err = c.Trees.Look(ctx, c.By.Tenant, agent)
	if now, ok := c.Fleet.Now(c.By.Tenant, agent); ok {
		w.Status = now.Agent.Status
	}
	return w, err
}

// viewed are the files that were seen as they are.
func (c *Call) viewed(ctx context.Context, agent string) (map[string][]string, error) {
	r := c.Trees.Review(c.By.Tenant, agent)
	if len(r.Viewed) == 0 {
		return nil, nil
	}
	now, err := c.Trees.Compare(ctx, c.By.Tenant, agent, tree.Query{})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := c.Trees.Write(ctx, now, &tree.Bounded{To: &b, Most: tree.MaxPatch}); err != nil {
		return nil, err
	}
	return r.Seen(tree.Parts(b.Bytes())), nil
}

// where reads FILE, FILE:LINE or FILE:FIRST-LAST, with a minus before lines that are
// gone; . is all of it.
func where(text string) (m tree.Remark, err error) {
	if text == "." {
		return m, nil
	}
	m.File = text
	file, lines, has := cutLast(text, ":")
	if !has {
		return m, nil
	}
	lines, m.Old = strings.CutPrefix(lines, "-") // as the diff view has lines that are gone
	first, last, span := strings.Cut(lines, "-")
	if m.Line, err = strconv.Atoi(first); err != nil {
		return tree.Remark{File: text}, nil // a name with a colon
	}
	m.File = file
	if span {
		if m.Last, err = strconv.Atoi(last); err != nil {
			return m, core.Invalid("place", text, "FILE, FILE:LINE, FILE:FIRST-LAST, or . for all of it").With("field", "place")
		}
	}
	return m, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func reviewRemark() *Op {
	var name, at, text string
	return define(Op{
		Name: "review remark", Short: "Say something about a line, a file or all of an agent's work", Undo: "review unremark", Done: "remarked on",
		Long: "Say something about an agent's work: at FILE:LINE or FILE:FIRST-LAST of a file as the agent left it, at FILE, or at\n" +
			". for all of it. Remarks are a draft that everybody who reviews sees, until review send makes them a task.",
		Example: "review remark ada main.go:12 'this error is dropped'\nreview remark ada . 'please add a test'",
		Params:  []*Param{place(&name, "AGENT", "tree"), place(&at, "PLACE", ""), place(&text, "TEXT", "").bounds(1, 10_000)},
	}, func(ctx context.Context, c *Call) (m tree.Remark, err error) {
		if m, err = where(at); err != nil {
			return m, err
		}
		m.Text = text
		return c.Trees.Remark(ctx, c.By, name, m)
	})
}

func reviewUnremark() *Op {
	var name string
	var id int
	return define(Op{
		Name: "review unremark", Short: "Take a remark that was not sent back", Done: "took back",
		Params: []*Param{place(&name, "AGENT", "tree"), need(&id, "remark", "number `N` of the remark, as review show has it")},
	}, func(ctx context.Context, c *Call) (tree.Remark, error) { return c.Trees.Unremark(ctx, c.By, name, id) })
}

func reviewView(verb, short, undo, done, long string, do func(ctx context.Context, c *Call, agent, file string) (tree.Viewed, error)) *Op {
	var name, file string
	return define(Op{
		Name: "review " + verb, Short: short, Undo: undo, Done: done, Long: long,
		Params: []*Param{place(&name, "AGENT", "tree"), place(&file, "FILE", "").names(reach.Inside).bounds(1, 4096)},
	}, func(ctx context.Context, c *Call) (tree.Viewed, error) { return do(ctx, c, name, file) })
}

// lastTask is what an agent was asked last, the zero task for nothing yet.
func (c *Call) lastTask(ctx context.Context, agent string) (t task.Task, err error) {
	page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Agent: agent, Size: 1, Kind: fleet.KindPrompt})
	if len(page.Items) > 0 {
		t = page.Items[0]
	}
	return t, err
}

func agentDiff() *Op {
	var name string
	var q tree.Query
	var stat bool
	return define(Op{
		Name: "agent diff", Short: "Show how an agent changed the files of its tree", Effect: Reads, Looks: true, ForAgents: true,
		Long: "Show how an agent changed the files of its tree, in git's format of patches: since it was made or last taken over\n" +
			"(base), since its newest task began (task), since a task, a call or a commit; or against the work of another agent.\n" +
			"Files after it are all that is shown.",
		Example: "agent diff ada\nagent diff ada --since task --stat\nagent diff ada main.go --against bob",
		Params: []*Param{
			place(&name, "NAME", "tree"), maybe(&q.Paths, "FILE…", "").names(reach.Inside),
			flag(&q.Since, "since", "`POINT`: base (the default), task, or the id of a task, a call or a commit"),
			flag(&q.At, "state", "as its files were at this `COMMIT`, such as an approval names").bounds(1, 64),
			flag(&q.Against, "against", "compare with the work of this `AGENT`").from("tree"),
			flag(&stat, "stat", "list the files and how many lines changed, without the text"),
		},
	}, func(ctx context.Context, c *Call) (p Patch, err error) {
		if q.Since == "task" {
			last, err := c.lastTask(ctx, name)
			if err != nil {
				return p, err
			}
			q.Since = last.TaskID
		}
		if p.Compared, err = c.Trees.Compare(ctx, c.By.Tenant, name, q); err != nil || stat {
			return p, err
		}
		var b bytes.Buffer
		out := &tree.Bounded{To: &b, Most: tree.MaxPatch}
		if err = c.Trees.Write(ctx, p.Compared, out); out.Over > 0 {
			fmt.Fprintf(&b, "\n… and %d bytes more: name some of the files\n", out.Over)
		}
		p.Text = b.String()
		return p, err
	})
}
