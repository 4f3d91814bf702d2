package tree

import (
	"context"
	"io"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// Look is the work in a tree, as it is reviewed.
type Look struct {
	Tree    `json:",embed"`
	State   string   `json:"state"`
	Changes []Change `json:"changes"`
	Added   int      `json:"added"`
	Removed int      `json:"removed"`
	Behind  bool     `json:"behind,omitzero"` // the base has moved on since
	// Away is the machine that it lies on, where that is another one: what changed in
	// it is not known here, and Changes is nil.
	Away string `json:"away,omitempty"`
	// Ahead and BehindBy are commits: of the agent that were not taken over, and of the
	// base since the tree was made from it. What is not committed counts as none.
	Ahead    int      `json:"ahead,omitzero"`
	BehindBy int      `json:"behind_by,omitzero"`
	Remarks  []Remark `json:"remarks,omitempty"`
	Checked  *Checked `json:"checked,omitempty"`
	Overlap  []string `json:"overlap,omitempty"` // agents of the same source that changed the same files, with those
}

// Look looks at the tree of an agent. Of one on another machine it says that alone.
func (s *Trees) Look(ctx context.Context, tenant, agent string) (l Look, err error) {
	t, err := s.Tree(tenant, agent)
	if err != nil {
		return l, err
	}
	l = Look{Tree: t, Changes: []Change{}}
	if !t.Landing.open() {
		l.Landing = nil
	}
	if t.Phase != Ready {
		return l, nil
	}
	if s.away(t) != nil {
		l.Away, l.Changes, l.Remarks = t.Place.Host(), nil, s.Review(tenant, agent).Remarks
		return l, nil
	}
	if s.opt.Driver == nil {
		return l, blind()
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return l, err
	}
	l.State = now.Commit
	if l.Changes, err = s.opt.Driver.Changes(ctx, t, t.Since, now.Commit); err != nil {
		return l, err
	}
	l.Added, l.Removed = sums(l.Changes)
	if t.Kind == Git {
		tip, err := s.opt.Driver.Tip(ctx, t)
		l.Behind = err == nil && tip != t.BaseCommit
		if err != nil {
			tip = t.BaseCommit // there is no such branch any more
		}
		if l.Ahead, l.BehindBy, err = s.opt.Driver.Apart(ctx, t, now, tip); err != nil {
			return l, err
		}
	}
	r := s.Review(tenant, agent)
	l.Remarks, l.Checked = r.Remarks, r.Checked
	s.note(t, now.Commit, l.Changes)
	s.acquaint(ctx, t)
	l.Overlap = s.overlaps(ctx, t)
	return l, nil
}

// What a state is kept of: a task's beginning, or a call's. An agent chooses the ids of
// its calls, so they are no names of tasks.
const (
	MarkTask = "task "
	MarkCall = "call "
)

// Mark keeps the state of an agent's tree, if it has one, under MarkTask or MarkCall
// with an id.
func (s *Trees) Mark(ctx context.Context, tenant, agent, label string) error {
	t, ok := s.works(tenant, agent)
	if !ok {
		return nil
	}
	return s.opt.Driver.Mark(ctx, t, label)
}

// Query says what to compare.
type Query struct {
	// Since is "base" (or ""), a commit, or the id of a task or a call.
	Since   string
	Against string // another agent of the same source, whose work is on the old side
	At      string // a commit of its work; "" is as it is now
	Paths   []string
}

// Compared are two states of what a tree is of.
type Compared struct {
	Tree    Tree     `json:"-"`
	Agent   string   `json:"agent"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Changes []Change `json:"changes"`
	Paths   []string `json:"-"`
}

// blind is the error of who only reads the data file. To look at a tree is to write: its
// state becomes a commit of a repository beside that file, which one process changes at
// a time.
func blind() error {
	return core.Errorf(core.Unavailable, "tree: its files are not looked at with --read-only: git keeps a state of them beside the data file").With("field", "tree")
}

// Compare finds two states and how they differ.
func (s *Trees) Compare(ctx context.Context, tenant, agent string, q Query) (c Compared, err error) {
	t, err := s.at(tenant, agent)
	if err != nil {
		return c, err
	}
	c = Compared{Tree: t, Agent: agent, From: t.Since, Paths: q.Paths}
	if q.At != "" {
		c.To, err = s.opt.Driver.Marked(ctx, t, q.At)
	} else {
		var now State
		now, err = s.opt.Driver.Now(ctx, t)
		c.To = now.Commit
	}
	if err != nil {
		return c, err
	}
	switch {
	case q.Against != "":
		other, err := s.at(tenant, q.Against)
		if err != nil {
			return c, err
		}
		if other.Source != t.Source {
			return c, core.Invalid("against", q.Against, "an agent with a tree of "+t.Source)
		}
		theirs, err := s.opt.Driver.Now(ctx, other)
		if err != nil {
			return c, err
		}
		c.From = theirs.Commit
	case q.Since != "" && q.Since != "base":
		c.From, err = s.opt.Driver.Marked(ctx, t, q.Since)
	}
	if err != nil {
		return c, err
	}
	c.Changes, err = s.opt.Driver.Changes(ctx, t, c.From, c.To)
	if len(q.Paths) > 0 {
		c.Changes = slices.DeleteFunc(c.Changes, func(ch Change) bool { return !slices.Contains(q.Paths, ch.Path) })
	}
	return c, err
}

// Write writes how they differ, in git's format of patches.
func (s *Trees) Write(ctx context.Context, c Compared, out io.Writer) error {
	return s.opt.Driver.Diff(ctx, c.Tree, c.From, c.To, c.Paths, out)
}

// Asks is what to take over.
type Asks struct {
	Agent     string
	Mode      Mode
	Only      []Piece
	Message   string
	Unchecked bool
	Markers   bool   // conflict markers may be in it
	At        string // the state that was looked at; another one by now is a conflict
	Remote    string // of a push
	Branch    string
	Request   bool
	Task      string // whose merge an undo takes back
}

// Input is that of a task that does what is asked, of the work as it is now.
func (s *Trees) Input(ctx context.Context, tenant, kind string, q Asks) (in Input, err error) {
	t, err := s.at(tenant, q.Agent)
	if err != nil {
		return in, err
	}
	if kind == KindUndo {
		if err := s.undoing(ctx, tenant, q.Task); err != nil {
			return in, err
		}
		_, err := s.undoable(ctx, t, q.Task)
		return Input{Agent: q.Agent, Task: q.Task}, err
	}
	now, err := s.opt.Driver.Now(ctx, t)
	if err != nil {
		return in, err
	}
	if q.At != "" && q.At != now.Commit {
		return in, core.Errorf(core.Conflict, "state: %s has changed its files since %s; look at them again", q.Agent, core.Clip(q.At)).With("field", "state").With("value", core.Clip(q.At))
	}
	in = Input{Agent: q.Agent, State: now.Commit}
	if kind == KindCheck {
		return in, nil
	}
	if q.Mode == "" {
		q.Mode = Squash
	}
	in.Into, in.Mode, in.Only, in.Message, in.Unchecked = into(t), q.Mode, q.Only, q.Message, q.Unchecked
	if kind == KindPush {
		in.Branch, in.Request, in.Unchecked = q.Branch, q.Request, true
		if in.Branch == "" {
			in.Branch = t.Branch
		}
		in.Remote = q.Remote
		if in.URL, err = s.remote(t, q.Remote); err != nil {
			return in, err
		}
		if at, _ := ReadRemote(in.URL); at.Here() && in.Request {
			return in, core.Invalid("request", true, "no pull request of a remote of this machine")
		}
	}
	tip, err := s.opt.Driver.Tip(ctx, t)
	if err != nil {
		return in, err
	}
	j, err := s.opt.Driver.Join(ctx, t, Join{State: in.State, Onto: tip, Mode: in.Mode, Only: in.Only, Message: in.Message, By: "preview"})
	switch {
	case err == nil && len(j.Conflicts) > 0:
		err = conflicts(t, j)
	case err == nil && len(j.Marked) > 0 && !q.Markers:
		err = core.Errorf(core.Conflict, "the work of %s holds conflict markers in %s: give them to the agent with review send, settle them yourself with review edit, or say --markers if they belong there", q.Agent, Named(j.Marked)).
			With("field", "agent").With("value", q.Agent).With("marked", some(j.Marked))
	}
	return in, err
}

// undoing refuses to take back what is being taken back already.
func (s *Trees) undoing(ctx context.Context, tenant, merge string) error {
	for _, status := range []task.Status{task.Queued, task.Running} {
		page, err := s.opt.Tasks.List(ctx, tenant, core.Filter{Kind: KindUndo, Status: string(status), Size: core.MaxPageSize})
		if err != nil {
			return err
		}
		for _, t := range page.Items {
			if t.Waiting != "" {
				continue // it finds the base moved by the time that it is approved
			}
			var in Input
			if t, err = s.opt.Tasks.Get(ctx, tenant, t.TaskID); err == nil && core.DecodeStored(t.Input, &in) == nil && in.Task == merge {
				return core.Errorf(core.Conflict, "task: %s takes %s back already", t.TaskID, merge).With("field", "task").With("value", merge)
			}
		}
	}
	return nil
}
