package op

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// Work is the work in an agent's tree, as a list shows it.
type Work struct {
	tree.Look `json:",embed"`
	Status    fleet.AgentStatus `json:"agent_status"`
}

// Patch is how two states differ, with the text in git's format.
type Patch struct {
	tree.Compared `json:",embed"`
	Text          string `json:"patch"`
}

// maxPatch bounds the text of a patch that is a result, in bytes.
const maxPatch = 32 << 20

func reviews() []*Op {
	agent := arg("AGENT", "tree")
	return []*Op{
		list(Op{Name: "review list", Short: "List what agents changed in their trees", Statuses: core.Strings(tree.Making, tree.Ready)},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[Work], error) {
				var all []Work
				for _, t := range c.Trees.All(c.By.Tenant) {
					w, err := c.work(ctx, t.Agent)
					if err != nil {
						return core.Page[Work]{}, err
					}
					all = append(all, w)
				}
				return core.Pick(all, nil, f, func(w Work) core.Traits {
					return core.Traits{Status: string(w.Phase), Agent: w.Agent, At: w.CreatedAt, Text: w.Agent + " " + w.Source + " " + w.Base}
				})
			}),
		show(Op{
			Name: "review show", Short: "Show what an agent changed in its tree, and what was said of it",
			Long: "Show what an agent changed in its tree since it was made or last taken over: the files with their lines, whether the\n" +
				"base has moved on, who else changed the same files, the remarks, and what the checks said.",
		}, agent, func(ctx context.Context, c *Call, name string) (Work, error) { return c.work(ctx, name) }),
		reviewRemark(),
		reviewUnremark(),
		reviewSend(),
		reviewAccept(),
		treeTask(Op{
			Name: "review check", Short: "Test the work in an agent's tree with the checks of its project", Done: "tests",
			Long: "Test the work in an agent's tree with the checks of its project (project checks), each in a cell, in a copy of the\n" +
				"tree as it is now. What they said stands in review show.",
			Example: "review check ada --wait",
		}, tree.KindCheck, func(*tree.Asks) []*Param { return nil }),
		change(Op{
			Name: "review update", Short: "Bring what its base became into an agent's tree", Done: "brought up to date:",
			Long: "Bring what its base became into the tree of an agent that is idle. Where both changed the same lines the file then\n" +
				"holds both sides, marked as git marks them: give them to the agent with review send, or edit them in the tree.",
		}, agent, func(ctx context.Context, c *Call, name string) (u Updated, err error) {
			u.Agent = name
			u.Conflicts, err = c.Trees.Update(ctx, c.By, name)
			if err == nil && len(u.Conflicts) > 0 {
				_, err = c.Trees.Remark(ctx, c.By, name, tree.Remark{Text: "The files " + strings.Join(u.Conflicts, ", ") + " hold both sides of a conflict with " + "what the base became, between <<<<<<< and >>>>>>>. Resolve them so that both intentions are kept."})
			}
			return u, err
		}),
	}
}

// Updated is what came of an update of a tree.
type Updated struct {
	Agent     string   `json:"agent"`
	Conflicts []string `json:"conflicts,omitempty"`
}

// String tells it.
func (u Updated) String() string {
	if len(u.Conflicts) == 0 {
		return "the tree of " + u.Agent + " is up to date with its base"
	}
	return fmt.Sprintf("the tree of %s holds both sides of conflicts in %s; a remark for it waits: review send %s", u.Agent, strings.Join(u.Conflicts, ", "), u.Agent)
}

func (c *Call) work(ctx context.Context, agent string) (w Work, err error) {
	w.Look, err = c.Trees.Look(ctx, c.By.Tenant, agent)
	if now, ok := c.Fleet.Now(c.By.Tenant, agent); ok {
		w.Status = now.Agent.Status
	}
	return w, err
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

func reviewSend() *Op {
	var name, text string
	var w waiting
	return define(Op{
		Name: "review send", Short: "Send an agent's work back with the remarks, as one task", Done: "sent back to",
		Long: "Send an agent's work back with all remarks that were not sent yet, as one task for the agent, with file and line.\n" +
			"The agent must be idle. --text adds words of your own at the end.",
		Example: "review send ada --wait",
		Params:  append(w.params("wait for its end; exit 1 unless it succeeded"), place(&name, "AGENT", "tree"), flag(&text, "text", "more `TEXT` for the agent").bounds(1, 10_000)),
		Check:   w.check,
	}, func(ctx context.Context, c *Call) (made task.Task, err error) {
		if _, err := c.Trees.Tree(c.By.Tenant, name); err != nil {
			return made, err
		}
		r := c.Trees.Review(c.By.Tenant, name)
		message := text
		if len(r.Open()) > 0 {
			message = strings.TrimSpace(r.Message() + "\n" + text)
		}
		if message == "" {
			return made, core.Errorf(core.Conflict, "agent: there is no remark on the work of %s to send; review remark makes one", name).With("field", "agent").With("value", name)
		}
		if made, err = c.Fleet.Assign(ctx, c.By, name, message, ""); err != nil {
			return made, err
		}
		if len(r.Open()) > 0 {
			if _, err := c.Trees.Sent(ctx, c.By, name, made.TaskID); err != nil {
				return made, err
			}
		}
		return w.task(ctx, c, made, nil)
	})
}

// treeTask makes an operation that dispatches a task about the work in a tree as it
// is now.
func treeTask(o Op, kind string, params func(*tree.Asks) []*Param) *Op {
	var q tree.Asks
	var w waiting
	var reason string
	o.Params = append(append([]*Param{place(&q.Agent, "AGENT", "tree")}, params(&q)...), append(w.params("wait for its end; exit 1 unless it succeeded"), why(&reason))...)
	before := o.Check
	o.Check = func(c *Call) error {
		if before != nil {
			if err := before(c); err != nil {
				return err
			}
		}
		return w.check(c)
	}
	return define(o, func(ctx context.Context, c *Call) (made task.Task, err error) {
		if q.Message == "" && kind != tree.KindCheck {
			q.Message = c.commitMessage(ctx, q.Agent)
		}
		in, err := c.Trees.Input(ctx, c.By.Tenant, kind, q)
		if err != nil {
			return made, err
		}
		made, err = c.Swarm.Dispatch(ctx, c.By, swarm.Dispatch{Kind: kind, Input: core.MustEncode(in), Session: c.Session, Parent: c.Task, Trace: c.Trace, Intent: reason})
		return w.task(ctx, c, made, err)
	})
}

// commitMessage is what a commit says where nobody says more: what the agent was asked
// last, and answered.
func (c *Call) commitMessage(ctx context.Context, agent string) string {
	page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Agent: agent, Size: 1, Kind: fleet.KindPrompt})
	if err != nil || len(page.Items) == 0 {
		return tree.Message(agent, nil)
	}
	return tree.Message(agent, &page.Items[0])
}

func unchecked(q *tree.Asks) *Param {
	return flag(&q.Unchecked, "no-checks", "do not run the checks of the project on the result first")
}

func reviewAccept() *Op {
	var pieces []string
	var only *tree.Asks
	return treeTask(Op{
		Name: "review accept", Short: "Take over files or hunks of an agent's work", Undo: "merge undo", Done: "asked to take over from",
		Long: "Take over files of an agent's work, or hunks of a file, as one commit on its base: FILE, or FILE:2,3 for the second\n" +
			"and third hunk as agent diff shows them. Without any it is all of it. The rest stays in the tree, to be reviewed.",
		Example: "review accept ada main.go util.go:1,3 --message 'Handle the error'",
		Check: func(*Call) error {
			only.Only = pieced(pieces)
			return nil
		},
	}, tree.KindMerge, func(q *tree.Asks) []*Param {
		only = q
		return []*Param{
			maybe(&pieces, "FILE|HUNK…", ""),
			flag(&q.Message, "message", "what the commit says: `TEXT`").bounds(1, 10_000), unchecked(q),
		}
	})
}

// pieced reads FILE and FILE:HUNK,HUNK.
func pieced(words []string) (all []tree.Piece) {
	for _, word := range words {
		p := tree.Piece{Path: word}
		file, hunks, has := cutLast(word, ":")
		for h := range strings.SplitSeq(hunks, ",") {
			n, bad := strconv.Atoi(h)
			if !has || bad != nil {
				p.Hunks, has = nil, false
				break
			}
			p.Hunks = append(p.Hunks, n)
		}
		if has {
			p.Path = file
		}
		all = append(all, p)
	}
	return all
}

func merges() []*Op {
	var squash, rebase, merge bool
	return []*Op{
		treeTask(Op{
			Name: "merge", Short: "Take an agent's work over into its base", Undo: "merge undo", Done: "asked to merge",
			Long: "Take an agent's work over into the branch that its tree was made from, or into its directory. It is a task before\n" +
				"the gate: its approval shows exactly the commits and how the files change, and holds for these alone. A base that\n" +
				"moves meanwhile makes a new question. The checks of the project run first, on the result, in a cell. Merges of one\n" +
				"repository come one after another, each on top of those before it.\n" +
				"--squash makes one commit of it (the default), --rebase puts the agent's commits on top of the base, and what it did\n" +
				"not commit as one more; --merge makes a commit of two parents. What you have not committed is never overwritten.",
			Example: "merge ada --message 'Handle the error' --wait\nmerge ada --rebase",
			Check: func(*Call) error {
				if squash && rebase || squash && merge || rebase && merge {
					return usage("squash", "merge: one of --squash, --rebase, --merge")
				}
				return nil
			},
		}, tree.KindMerge, func(q *tree.Asks) []*Param {
			mode := func(into *bool, name, about string, m tree.Mode) *Param {
				p := flag(into, name, about)
				p.Valid = func() error {
					if *into {
						q.Mode = m
					}
					return nil
				}
				return p
			}
			return []*Param{
				mode(&squash, "squash", "one commit with all of it (the default)", tree.Squash),
				mode(&rebase, "rebase", "the agent's commits one by one on top of the base", tree.Rebase),
				mode(&merge, "merge", "a commit of two parents", tree.Merge),
				flag(&q.Message, "message", "what the commit says: `TEXT` (default what the agent was asked)").bounds(1, 10_000), unchecked(q),
			}
		}),
		list(Op{Name: "merge queue", Short: "List the merges that wait or run, in the order that they were asked for", Statuses: core.Strings(task.Queued, task.Running)},
			func(ctx context.Context, c *Call, f core.Filter) (core.Page[task.Task], error) {
				var all []task.Task
				for _, status := range []task.Status{task.Running, task.Queued} {
					page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Kind: tree.KindMerge, Status: string(status), Size: core.MaxPageSize})
					if err != nil {
						return page, err
					}
					slices.Reverse(page.Items)
					all = append(all, page.Items...)
				}
				return core.Pick(all, nil, f, func(t task.Task) core.Traits {
					return core.Traits{Status: string(t.Status), At: t.CreatedAt, Text: t.TaskID + " " + t.Title}
				})
			}),
		mergeUndo(),
	}
}

func pushes() []*Op {
	modes := core.Strings(tree.Modes()...)
	return []*Op{
		treeTask(Op{
			Name: "push", Short: "Send an agent's work to a branch of a remote", Done: "asked to push",
			Long: "Send an agent's work, on top of what its base is now, to a branch of a remote of the repository: swarmdeck/AGENT of\n" +
				"origin unless said. It is a task before the gate. Your own git sends it, with your keys and credential helpers, which\n" +
				"no agent has. --pr then opens a pull request with gh, or a merge request with glab.",
			Example: "push ada --remote origin --to fix-the-parser --pr",
		}, tree.KindPush, func(q *tree.Asks) []*Param {
			q.Remote, q.Mode = "origin", tree.Squash
			return []*Param{
				flag(&q.Remote, "remote", "`REMOTE` of the repository"), flag(&q.Branch, "to", "`BRANCH` there").bounds(1, 200),
				flag((*string)(&q.Mode), "mode", "how it becomes commits: "+strings.Join(modes, ", ")).enum(modes...),
				flag(&q.Message, "message", "what the commit says: `TEXT`").bounds(1, 10_000), flag(&q.Request, "pr", "open a pull request too"),
			}
		}),
	}
}

func mergeUndo() *Op {
	var id, reason string
	var w waiting
	return define(Op{
		Name: "merge undo", Short: "Take a merge back while nobody else has it", Effect: Destroys, Confirm: ConfirmAsk, Done: "asked to take back",
		Long: "Bring the base back to what it was before a merge, by its task. It is refused once the base has moved on, or a remote\n" +
			"has the commit: then make one that takes it back. The agent's tree stays, and its work is there to be merged again.",
		Params: append(w.params("wait for its end; exit 1 unless it succeeded"), place(&id, "TASK", "task"), why(&reason)),
		Check:  w.check,
	}, func(ctx context.Context, c *Call) (made task.Task, err error) {
		t, err := c.Tasks.Get(ctx, c.By.Tenant, id)
		if err != nil {
			return made, err
		}
		var in tree.Input
		if t.Kind != tree.KindMerge || core.DecodeStored(t.Input, &in) != nil {
			return made, core.Errorf(core.InvalidInput, "task: %s is no merge", id).With("field", "task").With("value", id)
		}
		made, err = c.Swarm.Dispatch(ctx, c.By, swarm.Dispatch{Kind: tree.KindUndo, Input: core.MustEncode(tree.Input{Agent: in.Agent, Task: t.TaskID}), Session: c.Session, Parent: c.Task, Trace: c.Trace, Intent: reason})
		return w.task(ctx, c, made, err)
	})
}

func agentDiff() *Op {
	var name string
	var q tree.Query
	var stat bool
	return define(Op{
		Name: "agent diff", Short: "Show how an agent changed the files of its tree", Effect: Reads, ForAgents: true,
		Long: "Show how an agent changed the files of its tree, in git's format of patches: since it was made or last taken over\n" +
			"(base), since its newest task began (task), since a task, a call or a commit; or against the work of another agent.\n" +
			"Files after it are all that is shown.",
		Example: "agent diff ada\nagent diff ada --since task --stat\nagent diff ada main.go --against bob",
		Params: []*Param{
			place(&name, "NAME", "tree"), maybe(&q.Paths, "FILE…", ""),
			flag(&q.Since, "since", "`POINT`: base (the default), task, or the id of a task, a call or a commit"),
			flag(&q.Against, "against", "compare with the work of this `AGENT`").from("tree"),
			flag(&stat, "stat", "list the files and how many lines changed, without the text"),
		},
	}, func(ctx context.Context, c *Call) (p Patch, err error) {
		var last *task.Task
		if page, err := c.Tasks.List(ctx, c.By.Tenant, core.Filter{Agent: name, Size: 1, Kind: fleet.KindPrompt}); err == nil && len(page.Items) > 0 {
			last = &page.Items[0]
		}
		if p.Compared, err = c.Trees.Compare(ctx, c.By.Tenant, name, q, last); err != nil || stat {
			return p, err
		}
		var b bytes.Buffer
		err = c.Trees.Write(ctx, p.Compared, &tree.Bounded{Buffer: &b, Most: maxPatch})
		p.Text = b.String()
		return p, err
	})
}

func projectChecks() *Op {
	var name string
	var lines []string
	var clear bool
	var o *Op
	o = define(Op{
		Name: "project checks", Short: "Show or set what tests the work of a project's agents", Effect: Reads,
		Long: "Show the checks of a project, or set them: shell lines that test a result before it is merged, each in a cell, in a\n" +
			"copy of what the base would be. --check sets them, in their order; --none removes them.",
		Example: "project checks web --check 'go vet ./...' --check 'go test ./...'",
		Params: []*Param{
			place(&name, "PROJECT", "project"),
			{Name: "check", About: "shell `LINE` that must end with 0; may be repeated", Into: &lines, Whole: true},
			flag(&clear, "none", "the project has no checks any more"),
		},
		Check: func(*Call) error {
			if len(lines) > 0 && clear {
				return usage("none", "project checks: --check or --none, not both")
			}
			if len(lines) == 0 && !clear {
				return nil
			}
			o.Effect, o.Role = Writes, Admin
			return nil
		},
	}, func(ctx context.Context, c *Call) (tree.Checks, error) {
		if len(lines) == 0 && !clear {
			return c.Trees.ChecksOf(c.By.Tenant, name), nil
		}
		return c.Trees.SetChecks(ctx, c.By, name, lines)
	})
	return o
}
