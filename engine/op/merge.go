package op

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

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
		if q.Message == "" && kind != tree.KindCheck { // what the agent was asked last
			last, err := c.lastTask(ctx, q.Agent)
			if err != nil {
				return made, err
			}
			q.Message = cmp.Or(last.Title, "Work of "+q.Agent)
		}
		in, err := c.Trees.Input(ctx, c.By.Tenant, kind, q)
		if err != nil {
			return made, err
		}
		made, err = c.Swarm.Dispatch(ctx, c.By, swarm.Dispatch{Kind: kind, Input: core.MustEncode(in), Session: c.Session, Parent: c.Task, Trace: c.Trace, Intent: reason})
		return w.task(ctx, c, made, err)
	})
}

func unchecked(q *tree.Asks) *Param {
	return flag(&q.Unchecked, "no-checks", "do not run the checks of the project on the result first")
}

func markers(q *tree.Asks) *Param {
	return flag(&q.Markers, "markers", "conflict markers in it belong there: without it they stop it")
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
			flag(&q.Message, "message", "what the commit says: `TEXT`").bounds(1, 10_000), unchecked(q), markers(q), looked(q),
		}
	})
}

func looked(q *tree.Asks) *Param {
	return flag(&q.At, "state", "refuse unless the work is still this `COMMIT`, as agent diff has it: hunks are counted in it").bounds(1, 64)
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
				flag(&q.Message, "message", "what the commit says: `TEXT` (default what the agent was asked)").bounds(1, 10_000), unchecked(q), markers(q), looked(q),
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
			Long: "Send an agent's work, on top of what its base is now, to a branch of a remote that is registered for its project with\n" +
				"project remote: swarmdeck/AGENT of origin unless said. It is a task before the gate. Your own git sends it, with your\n" +
				"keys and credential helpers, which no agent has, and with nothing of the repository's configuration.\n" +
				"--pr then opens a pull request with gh, or a merge request with glab.",
			Example: "push ada --remote origin --to fix-the-parser --pr",
		}, tree.KindPush, func(q *tree.Asks) []*Param {
			q.Remote, q.Mode = "origin", tree.Squash
			return []*Param{
				flag(&q.Remote, "remote", "`REMOTE` of the project").names(reach.Address), flag(&q.Branch, "to", "`BRANCH` there").bounds(1, 200),
				flag((*string)(&q.Mode), "mode", "how it becomes commits: "+strings.Join(modes, ", ")).enum(modes...),
				flag(&q.Message, "message", "what the commit says: `TEXT`").bounds(1, 10_000), markers(q), flag(&q.Request, "pr", "open a pull request too"),
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
		if in, err = c.Trees.Input(ctx, c.By.Tenant, tree.KindUndo, tree.Asks{Agent: in.Agent, Task: t.TaskID}); err != nil {
			return made, err
		}
		made, err = c.Swarm.Dispatch(ctx, c.By, swarm.Dispatch{Kind: tree.KindUndo, Input: core.MustEncode(in), Session: c.Session, Parent: c.Task, Trace: c.Trace, Intent: reason})
		return w.task(ctx, c, made, err)
	})
}
