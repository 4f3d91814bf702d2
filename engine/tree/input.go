package tree

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/guarded"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/judge/edits"
)

// The task kinds.
const (
	KindMerge = "tree.merge" // takes a tree over
	KindUndo  = "tree.undo"  // takes that back
	KindPush  = "tree.push"  // sends it to a remote
	KindCheck = "tree.check" // tests it
	KindSetup = "tree.setup" // makes it ready for its agent
)

// Kinds are all of them.
func Kinds() []string { return []string{KindMerge, KindUndo, KindPush, KindCheck, KindSetup} }

// Input is that of a task of any of the kinds.
type Input struct {
	Agent   string  `json:"agent"`
	State   string  `json:"state,omitempty"` // of its tree: what is taken over, pushed or tested
	Into    string  `json:"into,omitempty"`  // the branch, or of a plain tree the directory
	Mode    Mode    `json:"mode,omitempty"`
	Only    []Piece `json:"only,omitempty" allow:"at most 1000 files"`
	Message string  `json:"message,omitempty" allow:"at most 10000 bytes"` // of the commit
	// Unchecked says that the checks of the project do not run.
	Unchecked bool   `json:"unchecked,omitzero"`
	Task      string `json:"task,omitempty"`   // that an undo takes back
	Remote    string `json:"remote,omitempty"` // of a push, and where it leads, as it is registered
	URL       string `json:"url,omitempty"`
	Branch    string `json:"branch,omitempty"`
	Request   bool   `json:"request,omitzero"` // a push opens a pull request too
	// Lines are those of a setup, which are the tree's own.
	Lines []string `json:"lines,omitempty"`
}

func (in *Input) check(kind string) error {
	switch {
	case !core.IsAgent(in.Agent):
		return core.Invalid("agent", in.Agent, "the name of an agent with a tree")
	case kind != KindUndo && kind != KindSetup && !isObject(in.State):
		return core.Invalid("state", in.State, "a state of the tree, a commit")
	case (kind == KindMerge || kind == KindPush) && !slices.Contains(Modes(), in.Mode):
		return core.Invalid("mode", string(in.Mode), "squash, rebase, merge")
	case kind == KindUndo && in.Task == "":
		return core.Invalid("task", in.Task, "the task of a merge")
	case kind == KindPush && (in.URL == "" || in.Branch == ""):
		return core.Invalid("branch", in.Branch, "a branch, and the URL that it goes to")
	}
	return bound.Check(in)
}

func isObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

func (s *Trees) check(tenant, kind string, input core.Raw) (title string, action judge.Action, err error) {
	in, t, err := s.read(tenant, kind, input)
	if err != nil {
		return "", action, err
	}
	switch kind {
	case KindMerge:
		title = fmt.Sprintf("take %s over into %s", in.Agent, in.Into)
	case KindUndo:
		title = fmt.Sprintf("take %s back out of %s", in.Agent, into(t))
	case KindPush:
		title = fmt.Sprintf("push %s to %s of %s", in.Agent, in.Branch, in.URL)
	case KindCheck:
		title = "test the work of " + in.Agent
	case KindSetup:
		title = "set the tree of " + in.Agent + " up"
	}
	return title, judge.Action{Kind: kind, Args: core.MustEncode(in)}, nil
}

func (s *Trees) read(tenant, kind string, input core.Raw) (in Input, t Tree, err error) {
	if err = core.Decode(input, &in); err != nil {
		return in, t, err
	}
	if err = in.check(kind); err != nil {
		return in, t, err
	}
	if t, err = s.Tree(tenant, in.Agent); err == nil && t.Phase != Ready {
		err = core.Errorf(core.Conflict, "agent: the tree of %s is still being made", in.Agent).With("field", "agent")
	}
	if err == nil && kind == KindSetup && (t.Setup == nil || !slices.Equal(t.Setup.Lines, in.Lines)) {
		err = core.Errorf(core.Conflict, "lines: only what the tree of %s was made with sets it up", in.Agent).With("field", "lines")
	}
	if err == nil {
		err = s.away(t)
	}
	if err == nil && kind == KindPush {
		var to string
		if to, err = s.remote(t, in.Remote); err == nil && to != in.URL {
			err = core.Errorf(core.Conflict, "url: remote %s leads to %s, not to %s", in.Remote, to, core.Clip(in.URL)).With("field", "url").With("value", core.Clip(in.URL))
		}
	}
	return in, t, err
}

// into is what a tree is taken over into, in words.
func into(t Tree) string {
	if t.Kind == Plain {
		return t.Source
	}
	return t.Base
}

// Landed is the result of a merge, and what an undo needs.
type Landed struct {
	Agent     string   `json:"agent"`
	Into      string   `json:"into"`
	From      string   `json:"from"` // what the base was, and is now
	To        string   `json:"to"`
	Commits   []string `json:"commits,omitempty"` // subjects
	Files     int      `json:"files"`
	Added     int      `json:"added"`
	Removed   int      `json:"removed"`
	Since     string   `json:"since"` // of the tree, before
	Head      string   `json:"head,omitempty"`
	Checks    []Ran    `json:"checks,omitempty"`
	Published string   `json:"published,omitempty"`
}

// bind is what an approval of a task is bound to: exactly what it would do.
// Its text is what the card shows. A base that has moved makes another.
func (s *Trees) bind(ctx context.Context, tenant string, action judge.Action) []judge.File {
	in, t, err := s.read(tenant, action.Kind, action.Args)
	if err != nil || action.Kind == KindCheck || action.Kind == KindSetup {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, lookTime)
	defer stop()
	name := fmt.Sprintf("%s-%s.diff", in.Agent, short(in.State))
	text, lies, err := s.preview(ctx, t, action.Kind, in, maxPreview)
	if err != nil {
		return []judge.File{{Path: name, Unbound: core.ClipTo(err.Error(), 200)}}
	}
	sum := s.opt.Keep(tenant, text)
	return []judge.File{{Path: name, SHA256: sum, Size: int64(len(text)), Mode: "644", Runs: true, Lies: lies}}
}

// lookTime is how long it may take to find out what a task would do.
const lookTime = time.Minute

// Bounds of a preview, in bytes: of its patch, where what is beyond is told apart by the
// object of all files in its head, and of the names there of what the patch is about, which
// stand there where it is long.
const maxPreview, maxHead, long = 200 << 10, 40 << 10, 48 << 10

// MaxPatch bounds the text of a patch that can be shown at all, in bytes.
const MaxPatch = 32 << 20

// Whole is the patch of all that the task of an approval would do to files, of which the card
// shows the beginning. It fails where the base has moved since.
func (s *Trees) Whole(ctx context.Context, tenant string, action judge.Action) ([]byte, error) {
	now := s.bind(ctx, tenant, action)
	if len(now) != 1 || len(action.Files) != 1 || now[0].SHA256 == "" || now[0].SHA256 != action.Files[0].SHA256 {
		return nil, core.Errorf(core.Conflict, "it is not what the approval is about any more: it is asked anew")
	}
	in, t, err := s.read(tenant, action.Kind, action.Args)
	if err != nil {
		return nil, err
	}
	text, _, err := s.preview(ctx, t, action.Kind, in, MaxPatch)
	if at := bytes.Index(text, []byte("\ndiff --git ")); at >= 0 {
		text = text[at+1:]
	}
	return text, err
}

// preview says what a task would do, and first what of it runs on a person's machine. Its
// patch has at most so many bytes.
func (s *Trees) preview(ctx context.Context, t Tree, kind string, in Input, most int) (text []byte, lies string, err error) {
	var out, patch bytes.Buffer
	if kind == KindUndo {
		fmt.Fprintf(&out, "%s back to what it was before %s\n", into(t), in.Task)
		_, err := s.undoable(ctx, t, in.Task)
		return out.Bytes(), "", err
	}
	tip, err := s.opt.Driver.Tip(ctx, t)
	if err != nil {
		return nil, "", err
	}
	j, err := s.opt.Driver.Join(ctx, t, Join{State: in.State, Onto: tip, Mode: in.Mode, Only: in.Only, Message: in.Message, By: "preview"})
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(&out, "%s is at %s, the work of %s at %s\n", into(t), short(tip), in.Agent, short(in.State))
	if kind == KindPush {
		to, err := ReadRemote(in.URL)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(&out, "goes to branch %s of %s: %s\n", in.Branch, in.Remote, to)
	}
	for _, c := range j.Commits {
		fmt.Fprintf(&out, "commit (%s): %s\n", in.Mode, c)
	}
	if len(j.Conflicts) > 0 {
		fmt.Fprintf(&out, "conflicts in %s\n", strings.Join(j.Conflicts, ", "))
		return out.Bytes(), "", nil
	}
	fmt.Fprintf(&out, "all files are then %s\n", short(j.Tree))
	if kind == KindMerge && !in.Unchecked {
		for _, line := range s.ChecksOf(t.TenantID, s.opt.project(t.TenantID, t.Agent)).Lines {
			fmt.Fprintf(&out, "first runs: %s\n", line)
		}
	}
	all, err := s.opt.Driver.Changes(ctx, t, tip, j.Commit)
	if err != nil {
		return nil, "", err
	}
	for _, c := range all {
		if c.LFS > 0 {
			fmt.Fprintf(&out, "%s: LFS object, %d bytes\n", c.Path, c.LFS)
		}
	}
	lies, parts := laid(all, s.GuardedOf(t.TenantID, t.Agent))
	to := &Bounded{To: &patch, Most: most}
	for _, paths := range parts { // what a person must see stands first
		if err := s.opt.Driver.Diff(ctx, t, tip, j.Commit, paths, to); err != nil {
			return nil, "", err
		}
	}
	if patch.Len()+to.Over > MaxPatch {
		return nil, "", core.Errorf(core.Conflict, "its diff has more than %d MiB, which nobody can be shown: take it over in parts: review accept %s FILE…", MaxPatch>>20, in.Agent)
	}
	if patch.Len()+to.Over > long || len(all) > 50 {
		listed(&out, all)
		fmt.Fprintf(&out, "all of it: agent diff %s --state %s\n", in.Agent, in.State)
	}
	if to.Over > 0 {
		patch.WriteString(edits.Rest)
	}
	text = slices.Concat(out.Bytes(), []byte("\n"), patch.Bytes())
	if lies != "" {
		text = slices.Concat([]byte(lies+"\n"), text)
	}
	return bytes.ToValidUTF8(text, []byte("?")), lies, nil
}

// listed names what changes.
func listed(out *bytes.Buffer, all []Change) {
	fmt.Fprintf(out, "%d files change:\n", len(all))
	for i, c := range all {
		if out.Len() > maxHead {
			fmt.Fprintf(out, "  and %d more\n", len(all)-i)
			break
		}
		how := fmt.Sprintf("+%d -%d", c.Added, c.Removed)
		if c.Binary {
			how = "not text"
		}
		fmt.Fprintf(out, "  %s %s %s\n", c.Status, shown(c.Path), how)
	}
}

// Bounds of what is named before the rest, and of the names of the rest, in bytes.
const (
	maxLies  = 50
	maxNames = 1 << 20
)

// laid tells what of changes runs on a person's machine by lying there, and in which
// parts they are shown: those first. A part of nil is all of them. More is what the
// project adds to the list.
func laid(all []Change, more []string) (lies string, parts [][]string) {
	var said, first, rest []string
	size := 0
	for _, c := range all {
		when := guarded.When(c.Path, more)
		if when == "" {
			rest, size = append(rest, c.Path), size+len(c.Path)+1
			continue
		}
		first = append(first, c.Path)
		if len(said) < maxLies {
			said = append(said, shown(c.Path)+" runs on your machine when "+when)
		}
	}
	if over := len(first) - maxLies; over > 0 {
		said = append(said, fmt.Sprintf("%d more files run on your machine", over))
	}
	lies = strings.Join(said, "\n")
	switch {
	case len(first) == 0 || len(first) > maxLies:
		return lies, [][]string{nil}
	case size > maxNames:
		return lies, [][]string{first, nil}
	case len(rest) == 0:
		return lies, [][]string{first}
	}
	return lies, [][]string{first, rest}
}

// Bounded keeps the first Most bytes, and counts those beyond. The buffer is no embedded
// one: io.Copy would write to it past the bound.
type Bounded struct {
	To         *bytes.Buffer
	Most, Over int
}

// Write implements io.Writer; it never fails.
func (w *Bounded) Write(p []byte) (int, error) {
	fits := max(0, min(w.Most-w.To.Len(), len(p)))
	w.To.Write(p[:fits])
	w.Over += len(p) - fits
	return len(p), nil
}

func short(commit string) string { return commit[:min(12, len(commit))] }
