package op

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tree"
)

// What becomes of the conflicts that an update of a tree brings.
const (
	conflictsNote = "note" // a remark on them waits to be sent
	conflictsSend = "send" // the agent gets them as a task, with what else was remarked
	conflictsKeep = "keep" // a person settles them
)

// Updated is what came of an update of a tree.
type Updated struct {
	Agent     string   `json:"agent"`
	Conflicts []string `json:"conflicts,omitempty"`
	Task      string   `json:"task_id,omitempty"` // of the agent, which is to settle them
	settles   string
}

// String tells it.
func (u Updated) String() string {
	if len(u.Conflicts) == 0 {
		return "the tree of " + u.Agent + " is up to date with its base"
	}
	what := fmt.Sprintf("the tree of %s holds both sides of conflicts in %s; ", u.Agent, tree.Named(u.Conflicts))
	switch {
	case u.Task != "":
		return what + u.Agent + " settles them in task " + u.Task
	case u.settles == conflictsKeep:
		return what + "settle them there: review edit " + u.Agent + " FILE"
	}
	return what + "a remark for it waits: review send " + u.Agent
}

func reviewUpdate() *Op {
	var name string
	then := conflictsNote
	return define(Op{
		Name: "review update", Short: "Bring what its base became into an agent's tree", Done: "brought up to date:",
		Long: "Bring what its base became into the tree of an agent that is idle. Where both changed the same lines the file then\n" +
			"holds both sides, marked as git marks them. --conflicts says who settles that: note leaves a remark for review send,\n" +
			"send gives it to the agent as a task at once, with all other remarks, and keep leaves it to you: review edit.",
		Example: "review update ada\nreview update ada --conflicts send",
		Params: []*Param{
			place(&name, "AGENT", "tree"),
			flag(&then, "conflicts", "what becomes of conflicts: note (the default)|send|keep").enum(conflictsNote, conflictsSend, conflictsKeep),
		},
	}, func(ctx context.Context, c *Call) (u Updated, err error) {
		u.Agent, u.settles = name, then
		if u.Conflicts, err = c.Trees.Update(ctx, c.By, name); err != nil || len(u.Conflicts) == 0 || then == conflictsKeep {
			return u, err
		}
		_, err = c.Trees.Remark(ctx, c.By, name, tree.Remark{Text: "The files " + tree.Named(u.Conflicts) + " hold both sides of a conflict with what the base became, " +
			"between <<<<<<< and >>>>>>>. Resolve them so that both intentions are kept."})
		if err == nil && then == conflictsSend {
			var made task.Task
			made, err = c.sendReview(ctx, name, "")
			u.Task = made.TaskID
		}
		return u, err
	})
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
		if made, err = c.sendReview(ctx, name, text); err != nil {
			return made, err
		}
		return w.task(ctx, c, made, nil)
	})
}

// sendReview gives an agent a task of the remarks that were not sent yet, and a text.
func (c *Call) sendReview(ctx context.Context, name, text string) (made task.Task, err error) {
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
		_, err = c.Trees.Sent(ctx, c.By, name, made.TaskID)
	}
	return made, err
}
