package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/diff"
	"swarmdeck/engine/judge/edits"
)

// Card is what is shown of an approval and not kept with it. Judge.Card fills it in,
// and Answer the rule that it made.
type Card struct {
	Always  string         `json:"always,omitempty"` // the rule that an always makes of it, if nothing else is asked for
	Bound   string         `json:"bound,omitempty"`  // how many files it is bound to
	Caveat  string         `json:"caveat,omitempty"` // what it can't promise
	Changes []edits.Change `json:"changes,omitempty"`
	Cut     bool           `json:"cut,omitzero"` // Changes does not draw all of it
	Around  *Around        `json:"around,omitempty"`
}

// Around is what stands around an approval in the rest of the engine.
type Around struct {
	Behind   []string    `json:"behind,omitempty"`   // what waits for the answer: tasks, agents, people
	Spent    *Spent      `json:"spent,omitempty"`    // what its run has cost so far
	Expected *Spent      `json:"expected,omitempty"` // what tasks like its cost, at the median
	Output   []string    `json:"output,omitempty"`   // the last lines that its agent or task wrote
	Past     []Precedent `json:"past,omitempty"`     // answers to the same shape, the newest first
	Looking  []string    `json:"looking,omitempty"`  // who else has it before them
}

// Spent is what work has cost.
type Spent struct {
	Tokens  int64   `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
	Tasks   int     `json:"tasks,omitzero"` // how many it is told from
}

// Precedent is an answer that was given to the same shape, and what came of it.
type Precedent struct {
	ApprovalID string         `json:"approval_id"`
	Status     ApprovalStatus `json:"status"`
	By         string         `json:"by"`
	At         time.Time      `json:"at"`
	Reason     string         `json:"reason,omitempty"`
	Same       bool           `json:"same,omitzero"`  // the very same arguments
	Came       string         `json:"came,omitempty"` // the status of its task since
}

// cards are approvals as a person is shown them.
type cards struct {
	approvals *approvals
	contents  Contents // nil shows none
	around    Surroundings
}

// Surroundings tell what stands around an approval.
type Surroundings interface {
	// Around takes the newest answers to the same shape, which the card has read.
	Around(ctx context.Context, a *Approval, past []Approval) (*Around, error)
}

// Surround names who tells it. Call it before Run.
func (j *cards) Surround(s Surroundings) { j.around = s }

// file is the file of the action that a path names; nil where none was bound.
func (a *Action) file(path string) *File {
	for i := range a.Files {
		if f := &a.Files[i]; f.Unbound == "" && (path == f.Path || strings.HasSuffix(path, "/"+f.Path)) {
			return f
		}
	}
	return nil
}

// changes is how the action would change files, told against what they held when it was judged.
func (j *cards) changes(a *Approval) []edits.Change {
	all := edits.Of(a.Action.Args, func(path string) (string, bool) {
		f := a.Action.file(path)
		if f == nil || f.isNew() {
			return "", f != nil
		}
		return j.content(a.TenantID, f.SHA256)
	})
	for i := range all {
		if f := a.Action.file(all[i].Path); f != nil && f.isNew() {
			all[i].Note = "new file"
		}
	}
	return all
}

// Card is an approval with what its files hold, or how they differ from what a
// person approved last.
func (j *cards) Card(ctx context.Context, tenant, id string) (Approval, error) {
	a, err := j.approvals.Approval(ctx, tenant, id)
	if err != nil {
		return a, err
	}
	a.Always, a.Bound, a.Caveat = a.standing(), a.Action.bound(), a.caveat()
	a.Changes = j.changes(&a)
	past, err := j.approvals.Past(ctx, tenant, a, pastLooked)
	if err != nil {
		return a, err
	}
	if j.around != nil {
		if a.Around, err = j.around.Around(ctx, &a, past); err != nil {
			return a, fmt.Errorf("see what stands around approval %s: %w", id, err)
		}
	}
	a.Action.Files = slices.Clone(a.Action.Files)
	left := edits.MaxAll
	for i := range a.Action.Files {
		f := &a.Action.Files[i]
		if f.Unbound == "" && !f.isNew() {
			if a.lands() {
				j.land(&a, f)
				continue
			}
			j.show(tenant, f, past, min(edits.MaxShown, left))
			left -= len(f.Text) + len(f.Diff)
		}
	}
	return a, nil
}

// lands reports that it is about a change of a repository, which its file is the patch of.
func (a *Approval) lands() bool { return strings.HasPrefix(a.Action.Kind, "tree.") }

// land fills in what a card shows of such a patch.
func (j *cards) land(a *Approval, f *File) {
	text, kept := j.content(a.TenantID, f.SHA256)
	if !kept {
		f.Note = notShown
		return
	}
	f.Text, a.Changes, a.Cut = edits.Landing(text)
	if a.Cut {
		f.Note = "not all of it is drawn here: v draws it, as does agent diff --state"
	}
}

const notShown = "not shown: no text, too large, or no longer kept"

// pastLooked is how many answered approvals of the same shape are looked at
// for an earlier version of a file.
const pastLooked = 50

// show fills in what a card shows of one file, in at most so many bytes.
func (j *cards) show(tenant string, f *File, past []Approval, most int) {
	text, kept := j.content(tenant, f.SHA256)
	if !kept {
		f.Note = notShown
		return
	}
	before, id := lastApproved(past, f)
	old, ok := j.content(tenant, before)
	switch {
	case before == f.SHA256:
		f.Text, f.Note = text, "as approved in "+id
	case ok:
		f.Diff, f.Note = diff.Unified(f.Path, old, text, most), "against what was approved in "+id
	default:
		f.Text = text
	}
	if len(f.Text) > most || len(f.Diff) > most {
		f.Text, f.Diff = core.ClipTo(f.Text, most), core.ClipTo(f.Diff, most)
		f.Note = strings.TrimPrefix(f.Note+"; it goes on", "; ")
	}
}

// lastApproved is the version of a file that a person approved last, and by
// which approval.
func lastApproved(past []Approval, f *File) (sha, id string) {
	for i := range past {
		if past[i].Status != Approved {
			continue
		}
		for _, g := range past[i].Action.Files {
			if g.Path == f.Path && g.Unbound == "" {
				return g.SHA256, past[i].ApprovalID
			}
		}
	}
	return "", ""
}

func (j *cards) content(tenant, sha string) (string, bool) {
	if j.contents == nil || sha == "" {
		return "", false
	}
	data, ok := j.contents.Content(tenant, sha)
	return string(data), ok
}

// unseen refuses to approve a change of a repository that nobody could be shown.
func (j *cards) unseen(a *Approval) error {
	if j.contents == nil || !a.lands() {
		return nil
	}
	for _, f := range a.Action.Files {
		why := f.Unbound
		if _, kept := j.content(a.TenantID, f.SHA256); !kept {
			why = cmp.Or(why, "it is no longer kept: ask anew")
		}
		if why != "" {
			return core.Errorf(core.Conflict, "approval %s: how it changes files can't be shown, so it can't be approved: %s", a.ApprovalID, why)
		}
	}
	return nil
}

// bound says how many files an action is bound to, and how many that it names
// it is not: "3 files, 1 not bound". It is "" where it names none.
func (a *Action) bound() string {
	bound := 0
	for i := range a.Files {
		if a.Files[i].Unbound == "" {
			bound++
		}
	}
	text := strconv.Itoa(bound) + " files"
	if bound == 1 {
		text = "1 file"
	}
	switch not := len(a.Files) - bound; {
	case len(a.Files) == 0:
		return ""
	case not > 0:
		text += ", " + strconv.Itoa(not) + " not bound"
	}
	return text
}

// caveat is what an approval can't promise, "" for nothing. A call of the
// drivers' own (terminal/create, fs/…) is carried out here.
func (a *Approval) caveat() string {
	switch ours, _, _ := strings.Cut(a.Action.Tool, "/"); {
	case a.Gate == GateTool && slices.Contains([]string{"acp", "exec", "coder"}, a.Driver) && ours != "terminal" && ours != "fs":
		return "The agent runs this by itself: what its files hold when it does can't be held to what is shown here."
	case a.Action.Kind == KindMCP:
		return "What the server does is bound by nothing: only what it says of the tool is."
	case len(a.Action.Files) > 0:
		return "Files that a script reads by itself are not bound."
	}
	return ""
}
