package tree

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// carry carries out a task of one of the kinds.
func (s *Trees) carry(ctx context.Context, job swarm.Job, hold *work) (core.Raw, error) {
	in, t, err := s.read(job.Task.TenantID, job.Task.Kind, job.Task.Input)
	if err != nil {
		return nil, err
	}
	c := carrying{s, job, hold, in, t}
	switch {
	case t.Landing.of(job.Task):
		return c.land(ctx)
	case job.Task.Begun:
		return nil, core.Errorf(core.Internal, "the tree of %s does not know what %s has begun", in.Agent, job.Task.TaskID)
	}
	if err := hold.pass(ctx); err != nil {
		return nil, err
	}
	switch job.Task.Kind {
	case KindCheck:
		return c.check(ctx)
	case KindSetup:
		return c.setup(ctx)
	}
	if err := s.claim(t.Source, job.Task.TaskID); err != nil {
		return nil, err
	}
	defer s.release(t.Source, job.Task.TaskID)
	if err := s.mendSource(ctx, t); err != nil {
		return nil, err
	}
	switch job.Task.Kind {
	case KindMerge:
		return c.merge(ctx)
	case KindPush:
		return c.push(ctx)
	}
	return c.undo(ctx)
}

// claim has one task at a time change a source; the others wait in the queue.
func (s *Trees) claim(source, task string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.landing[source]; other != "" && other != task {
		return core.Errorf(core.Unavailable, "%s is being changed by %s", source, other)
	}
	s.landing[source] = task
	return nil
}

func (s *Trees) release(source, task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.landing[source] == task {
		delete(s.landing, source)
	}
}

// carrying is one task at work.
type carrying struct {
	s    *Trees
	job  swarm.Job
	hold *work
	in   Input
	t    Tree
}

// self is who writes down what came of it.
func (c *carrying) self() core.Caller { return core.Self(c.job.Task.TenantID, component) }

// key names the landing of the task.
func (c *carrying) key() string { return c.job.Task.TaskID }

func (c *carrying) join(ctx context.Context, onto string) (Joined, error) {
	j, err := c.s.opt.Driver.Join(ctx, c.t, Join{
		Key: c.key(), State: c.in.State, Onto: onto, Mode: c.in.Mode, Only: c.in.Only, Message: c.in.Message,
		By: c.job.Task.CreatedBy, At: c.job.Task.CreatedAt,
	})
	if err == nil && len(j.Conflicts) > 0 {
		err = conflicts(c.t, j)
	}
	return j, err
}

// conflicts is the error of work that can't be put on top of its base.
func conflicts(t Tree, j Joined) error {
	return core.Errorf(core.Conflict, "%s and the work of %s both changed %s; give it to the agent with review update %s --conflicts send, or settle it yourself: "+
		"review update %s --conflicts keep, then review edit %s FILE", into(t), t.Agent, Named(j.Conflicts), t.Agent, t.Agent, t.Agent).With("field", "agent").With("value", t.Agent).With("conflicts", some(j.Conflicts))
}

// maxNamed is how many files a sentence names, maxListed how many an error lists.
const (
	maxNamed  = 5
	maxListed = 100
)

// Named names files in a sentence, the first of them where there are many.
func Named(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxNamed)], ", ")
	if over := len(paths) - maxNamed; over > 0 {
		text += fmt.Sprintf(" and %d more", over)
	}
	return text
}

func some(paths []string) []string { return paths[:min(len(paths), maxListed)] }

// merge tests the candidate on top of what the base is now, and lands it.
func (c *carrying) merge(ctx context.Context) (core.Raw, error) {
	d := c.s.opt.Driver
	tip, err := d.Tip(ctx, c.t)
	if err != nil {
		return nil, err
	}
	made, err := c.join(ctx, tip)
	if err != nil {
		return nil, err
	}
	out := Landed{Agent: c.t.Agent, Into: into(c.t), From: made.Onto, Commits: made.Commits, Since: c.t.Since, Head: c.t.Head}
	if !c.in.Unchecked {
		ok := false
		if out.Checks, ok, err = c.checks(ctx, made.Commit); err != nil || !ok {
			return nil, c.refused(out.Checks, err)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out.To = made.Commit
	all, err := d.Changes(ctx, c.t, out.From, out.To)
	if err != nil {
		return nil, err
	}
	out.Files = len(all)
	out.Added, out.Removed = sums(all)
	head := c.t.Head
	if len(c.in.Only) == 0 && c.t.Kind == Git {
		if now, err := d.Now(ctx, c.t); err == nil && now.Commit == c.in.State {
			head = now.Head
		}
	}
	return c.begin(ctx, Landing{Landed: out, Next: made.State, NextHead: head})
}

// refused is the error of a candidate that its checks did not pass.
func (c *carrying) refused(runs []Ran, err error) error {
	if err != nil {
		return err
	}
	last := runs[len(runs)-1]
	return core.Errorf(core.Conflict, "the checks do not pass on top of %s: %q ended with %d: %s", into(c.t), strings.Join(last.Command[2:], " "), last.Code, core.ClipTo(last.Tail, 500))
}

// checks runs the project's checks on a state, up to the first that fails.
func (c *carrying) checks(ctx context.Context, state string) (runs []Ran, ok bool, err error) {
	tenant := c.job.Task.TenantID
	return c.lines(ctx, state, c.s.ChecksOf(tenant, c.s.opt.project(tenant, c.t.Agent)).Lines)
}

// lines runs shell lines on a state, or of none in the tree itself, up to the first
// that fails.
func (c *carrying) lines(ctx context.Context, state string, lines []string) (runs []Ran, ok bool, err error) {
	tenant := c.job.Task.TenantID
	env := c.s.EnvOf(tenant, c.s.opt.project(tenant, c.t.Agent), c.t)
	for _, line := range lines {
		if err := c.hold.pass(ctx); err != nil {
			return runs, false, err
		}
		c.job.Log("INFO", "$ "+line)
		ran, err := c.s.opt.Driver.Run(ctx, c.t, state, Command{
			Argv: []string{"sh", "-c", line}, Env: env, Log: func(line string) { c.job.Log("INFO", line) }, Runs: c.hold.runs,
		})
		if err != nil {
			return runs, false, err
		}
		if runs = append(runs, ran); ran.Code != 0 {
			return runs, false, nil
		}
	}
	return runs, true, nil
}

// check tests a state, and keeps what came of it beside the remarks.
func (c *carrying) check(ctx context.Context) (core.Raw, error) {
	runs, ok, err := c.checks(ctx, c.in.State)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, core.Errorf(core.Conflict, "agent: the project of %s has no checks; set them with project checks", c.t.Agent).With("field", "agent")
	}
	checked := Checked{State: c.in.State, OK: ok, Runs: runs}
	if err := c.s.checked(ctx, c.self(), c.t.Agent, checked); err != nil {
		return nil, err
	}
	return core.MustEncode(checked), nil
}

// undo brings a base back to what it was before a merge, while nobody else has seen
// it.
func (c *carrying) undo(ctx context.Context) (core.Raw, error) {
	l, err := c.s.undoable(ctx, c.t, c.in.Task)
	if err != nil {
		return nil, err
	}
	next, head := l.Since, l.Head
	l.From, l.To = l.To, l.From
	return c.begin(ctx, Landing{Landed: l, Next: next, NextHead: head})
}

// landedBy is what a merge did, by its task.
func (o *Options) landedBy(ctx context.Context, tenant, id string) (l Landed, err error) {
	t, err := o.Tasks.Get(ctx, tenant, id)
	if err != nil {
		return l, err
	}
	if t.Kind != KindMerge || t.Status != task.Succeeded {
		return l, core.Errorf(core.Conflict, "task: %s is no merge that succeeded", id).With("field", "task").With("value", id)
	}
	r, err := o.Tasks.Result(ctx, tenant, id)
	if err == nil {
		err = core.DecodeStored(r.Output, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read what %s did: %w", id, err)
	}
	return l, nil
}

// undoable is what a merge took over, if it can be taken back still.
func (s *Trees) undoable(ctx context.Context, t Tree, task string) (l Landed, err error) {
	if l, err = s.opt.landedBy(ctx, t.TenantID, task); err != nil {
		return l, err
	}
	where, err := s.opt.Driver.Published(ctx, t, l.To)
	switch {
	case err != nil:
		return l, err
	case where != "":
		return l, core.Errorf(core.Conflict, "task: what %s merged was pushed to %s: others may have it; make a commit that takes it back", task, where).With("field", "task")
	case t.Kind == Plain:
		return l, nil
	}
	if tip, err := s.opt.Driver.Tip(ctx, t); err != nil || tip != l.To {
		return l, cmp.Or(err, error(core.Errorf(core.Conflict, "task: %s is no longer at what %s merged", into(t), task).With("field", "task").With("value", task)))
	}
	return l, nil
}

// push sends the work, on top of what the base is now, to a branch elsewhere.
func (c *carrying) push(ctx context.Context) (core.Raw, error) {
	d := c.s.opt.Driver
	tip, err := d.Tip(ctx, c.t)
	if err != nil {
		return nil, err
	}
	made, err := c.join(ctx, tip)
	if err != nil {
		return nil, err
	}
	if err := d.Push(ctx, c.t, Push{URL: c.in.URL, Commit: made.Commit, Branch: c.in.Branch, Was: c.t.Pushed[c.in.URL+" "+c.in.Branch]}); err != nil {
		return nil, err
	}
	out := map[string]any{"agent": c.t.Agent, "url": c.in.URL, "branch": c.in.Branch, "commit": made.Commit, "commits": made.Commits}
	err = c.s.save(ctx, c.self(), "tree.pushed", &c.t, func(t *Tree) {
		next := map[string]string{c.in.URL + " " + c.in.Branch: made.Commit}
		for k, v := range t.Pushed {
			if _, is := next[k]; !is && len(next) < 20 {
				next[k] = v
			}
		}
		t.Pushed = next
	})
	if err == nil && c.in.Request {
		var to Place
		var said string
		if to, err = ReadRemote(c.in.URL); err != nil {
			return nil, err
		}
		if said, err = d.Request(ctx, c.t, Request{To: to, Branch: c.in.Branch, Base: c.t.Base, Message: c.in.Message}); err == nil {
			out["request"] = said
		}
	}
	return core.MustEncode(out), err
}

// Update brings what the base became into a tree whose agent is idle. Files with
// conflicts hold both sides, marked as git marks them.
func (s *Trees) Update(ctx context.Context, by core.Caller, agent string) (conflicts []string, err error) {
	t, err := s.at(by.Tenant, agent)
	if err != nil {
		return nil, err
	}
	if s.opt.busy(by.Tenant, agent) {
		return nil, core.Errorf(core.Conflict, "agent: %s works; its files are changed while it is idle", agent).With("field", "agent").With("value", agent)
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return nil, err
	}
	tip, err := s.opt.Driver.Tip(ctx, t)
	if err != nil || tip == t.Since {
		return nil, err
	}
	if conflicts, err = s.opt.Driver.Update(ctx, t, "update-"+t.Agent, now.Commit, tip); err != nil {
		return nil, fmt.Errorf("bring %s into the tree of %s: %w", into(t), agent, err)
	}
	return conflicts, s.save(ctx, by, "tree.updated", &t, func(t *Tree) { t.Since, t.BaseCommit = tip, tip })
}
