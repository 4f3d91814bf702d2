package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/engine/core"
	"swarmdeck/engine/tree"
)

// Bounds of what an agent has committed.
const (
	maxCommits = 1000
)

// joining is one join.
type joining struct {
	git.Repository
	d *Driver
	t tree.Tree
	j tree.Join
	// sign says that commits are made by the user's own git: with a key they are
	// for good.
	sign bool
}

// landed is the ref that keeps what a key was joined to.
func landed(key string) string { return "refs/landed/" + strings.ReplaceAll(key, ":", "-") }

// onto is the ref that keeps what it was put on top of.
func onto(key string) string { return "refs/onto/" + strings.ReplaceAll(key, ":", "-") }

func (d *Driver) Join(ctx context.Context, t tree.Tree, q tree.Join) (out tree.Joined, err error) {
	r, err := d.repo(ctx, t)
	if err != nil {
		return out, err
	}
	if err := d.bound(ctx, r, t, q); err != nil {
		return out, err
	}
	j := joining{r, d, t, q, false}
	out.State = q.State
	if len(q.Only) > 0 {
		if out.State, err = j.pick(ctx); err != nil {
			return out, err
		}
		if _, err := r.Do(ctx, "update-ref", "refs/trees/"+t.Agent+"/"+out.State, out.State); err != nil {
			return out, err
		}
	}
	out.Onto = q.Onto
	if q.Key != "" {
		if done, err := j.before(ctx, &out); done || err != nil {
			return out, err
		}
		j.sign = r.Configured(ctx, "commit.gpgSign") == "true"
	}
	switch {
	case t.Kind == tree.Plain:
		err = j.plain(ctx, out.State, &out)
	case q.Mode == tree.Squash:
		err = j.squash(ctx, out.State, &out)
	case len(q.Only) > 0:
		err = core.Invalid("only", len(q.Only), "with squash: a part of what changed is a commit of its own")
	default:
		err = j.commits(ctx, &out)
	}
	if len(out.Conflicts) > 0 {
		out.Commit, out.Tree = "", ""
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if out.Tree, err = j.tree(ctx, out.Commit); err != nil {
		return out, err
	}
	if t.Kind == tree.Git {
		if _, err := d.taking(ctx, r, t, q.Onto, out.Commit); err != nil {
			return out, err
		}
	}
	if q.Key == "" {
		out.Marked, err = j.marked(ctx, q.Onto, out.Commit)
		return out, err
	}
	for _, ref := range [][2]string{{onto(q.Key), q.Onto}, {landed(q.Key), out.Commit}} {
		if _, err := r.Do(ctx, "update-ref", ref[0], ref[1]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// before finds what the same key was joined to, as long as that is on top of the base.
func (j *joining) before(ctx context.Context, out *tree.Joined) (done bool, err error) {
	base, never := j.Do(ctx, "rev-parse", "--verify", "--quiet", onto(j.j.Key))
	commit, ended := j.Do(ctx, "rev-parse", "--verify", "--quiet", landed(j.j.Key))
	if never != nil || ended != nil || base != j.j.Onto {
		return false, nil // or not to the end
	}
	made, err := j.tree(ctx, commit)
	if err != nil {
		return false, err
	}
	out.Onto, out.Commit, out.Tree = base, commit, made
	return true, nil
}

func (j *joining) tree(ctx context.Context, commit string) (string, error) {
	return j.Do(ctx, "rev-parse", "--verify", commit+"^{tree}")
}

var errConflicts = errors.New("conflicts")

func (d *Driver) Update(ctx context.Context, t tree.Tree, key, state, onto string) ([]string, error) {
	ctx, stop := patiently(ctx)
	defer stop()
	r, err := d.repo(ctx, t)
	if err != nil {
		return nil, err
	}
	j := joining{r, d, t, tree.Join{State: state, Onto: onto}, false}
	var out tree.Joined
	joined, err := j.merge3(ctx, t.Since, onto, state, &out)
	if err != nil && !errors.Is(err, errConflicts) {
		return nil, err
	}
	next, err := r.Do(ctx, "commit-tree", "-m", "a state", joined)
	if err != nil {
		return nil, err
	}
	if t.Kind == tree.Git {
		if err := pin(t, pinnedBase, onto); err != nil {
			return nil, err
		}
	}
	return out.Conflicts, d.bring(ctx, r, t, key, state, next)
}

// merge3 joins two trees that came from one. Of a conflict both sides stand in
// the files of the tree that it returns beside the error. Commits that nobody sees stand for
// them, since git joins commits only.
func (j *joining) merge3(ctx context.Context, base, ours, theirs string, out *tree.Joined) (string, error) {
	var commits []string
	for _, state := range []string{base, ours, theirs} {
		args := []string{"commit-tree", "-m", "a state", state + "^{tree}"}
		if len(commits) > 0 {
			args = append(args, "-p", commits[0])
		}
		commit, err := j.Do(ctx, args...)
		if err != nil {
			return "", err
		}
		commits = append(commits, commit)
	}
	text, err := j.Call(ctx, git.Call{Args: []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", commits[1], commits[2]}})
	parts := strings.Split(strings.TrimRight(string(text), "\x00\n"), "\x00")
	if failed, ok := errors.AsType[*git.Failed](err); ok && failed.Code == 1 && len(parts) > 1 {
		out.Conflicts = slices.Compact(parts[1:])
		return parts[0], errConflicts
	}
	return parts[0], err
}

// who are the names of a commit: whoever the user's configuration names, else who
// takes it over.
func (j *joining) who(ctx context.Context) []string {
	name, address := j.Configured(ctx, "user.name"), j.Configured(ctx, "user.email")
	if name == "" || address == "" {
		name, address = j.j.By, j.j.By+"@localhost"
	}
	at := fmt.Sprintf("@%d +0000", max(0, j.j.At.Unix()))
	return []string{
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + address, "GIT_AUTHOR_DATE=" + at,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + address, "GIT_COMMITTER_DATE=" + at,
	}
}

// commit makes a commit of a tree.
func (j *joining) commit(ctx context.Context, names []string, message, tree string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	call := git.Call{In: strings.NewReader(message), Env: names, Args: args}
	if j.sign {
		call.Own, call.Args = true, append(args, "-S")
	}
	out, err := j.Call(ctx, call)
	return strings.TrimSpace(string(out)), err
}

// message is what the commit says, with the agent as an author beside.
func (j *joining) message() string {
	return strings.TrimSpace(j.j.Message) + fmt.Sprintf("\n\nCo-authored-by: %s <%s>\n", j.t.Agent, email(j.t.Agent))
}

func nothing(t tree.Tree) error {
	return core.Errorf(core.Conflict, "agent: %s has changed nothing since %s", t.Agent, hex12(t.Since)).With("field", "agent")
}

// squash makes one commit.
func (j *joining) squash(ctx context.Context, state string, out *tree.Joined) error {
	joined, err := j.joined(ctx, state, out)
	if err != nil {
		return err
	}
	subject, _, _ := strings.Cut(j.message(), "\n")
	out.Commits = []string{subject}
	out.Commit, err = j.commit(ctx, j.who(ctx), j.message(), joined, j.j.Onto)
	return err
}

// joined is the base's tree with a state on top; the same tree is an error.
func (j *joining) joined(ctx context.Context, state string, out *tree.Joined) (string, error) {
	joined, err := j.merge3(ctx, j.t.Since, j.j.Onto, state, out)
	if err != nil {
		return "", err
	}
	was, err := j.tree(ctx, j.j.Onto)
	if err == nil && was == joined {
		err = nothing(j.t)
	}
	return joined, err
}

// plain makes a state of the directory.
func (j *joining) plain(ctx context.Context, state string, out *tree.Joined) error {
	joined, err := j.joined(ctx, state, out)
	if err != nil {
		return err
	}
	out.Commit, err = j.Do(ctx, "commit-tree", "-m", "a state", joined)
	return err
}

// commits takes the agent's own commits over: on top of the base one by one, or
// as they are beside it. What was not committed is one more.
func (j *joining) commits(ctx context.Context, out *tree.Joined) error {
	head, list, err := j.fetch(ctx)
	if err != nil {
		return err
	}
	names := j.who(ctx)
	theirs := slices.Concat([]string{"GIT_AUTHOR_NAME=" + j.t.Agent, "GIT_AUTHOR_EMAIL=" + email(j.t.Agent)}, names[2:])
	if j.j.Mode == tree.Merge {
		return j.beside(ctx, head, list, names, theirs, out)
	}
	at := j.j.Onto
	for _, c := range list {
		if at, err = j.replay(ctx, c, at, names, out); err != nil {
			return err
		}
	}
	// In the end it is what a squash would make.
	joined, err := j.either(ctx, j.j.State, out, [2]string{j.t.Since, j.j.Onto}, [2]string{head, at})
	if err != nil {
		return err
	}
	if at, err = j.next(ctx, theirs, j.message(), joined, at, out); err == nil && at == j.j.Onto {
		err = nothing(j.t)
	}
	out.Commit = at
	return err
}

// beside takes the agent's commits over as they are.
func (j *joining) beside(ctx context.Context, head string, list, names, theirs []string, out *tree.Joined) error {
	joined, err := j.joined(ctx, j.j.State, out)
	if err != nil {
		return err
	}
	for _, c := range list {
		subject, err := j.Do(ctx, "log", "-1", "--format=%s", c)
		if err != nil {
			return err
		}
		out.Commits = append(out.Commits, subject)
	}
	all, err := j.tree(ctx, j.j.State)
	if err != nil {
		return err
	}
	if head, err = j.next(ctx, theirs, j.message(), all, head, out); err != nil {
		return err
	}
	out.Commit, err = j.commit(ctx, names, "Merge "+j.t.Branch+"\n\n"+j.message(), joined, j.j.Onto, head)
	return err
}

// next makes a commit on top of another, unless it would change nothing.
func (j *joining) next(ctx context.Context, names []string, message, files, onto string, out *tree.Joined) (string, error) {
	if was, err := j.tree(ctx, onto); err != nil || was == files {
		return onto, err
	}
	subject, _, _ := strings.Cut(message, "\n")
	out.Commits = append(out.Commits, subject)
	return j.commit(ctx, names, message, files, onto)
}

// either joins what the agent made with the first of some bases and what became of them
// that do not conflict.
func (j *joining) either(ctx context.Context, theirs string, out *tree.Joined, tries ...[2]string) (joined string, err error) {
	for n, try := range tries {
		var one tree.Joined
		joined, err = j.merge3(ctx, try[0], try[1], theirs, &one)
		if n == 0 || err == nil {
			out.Conflicts = one.Conflicts
		}
		if !errors.Is(err, errConflicts) {
			break
		}
	}
	return joined, err
}

// replay makes a commit anew on top of another. One that holds what was taken over before
// it was committed is told from that.
func (j *joining) replay(ctx context.Context, c, onto string, names []string, out *tree.Joined) (string, error) {
	joined, err := j.either(ctx, c, out, [2]string{c + "^", onto}, [2]string{j.t.Since, j.j.Onto})
	if err != nil {
		return "", err
	}
	text, err := j.Do(ctx, "log", "-1", "--format=%an%x00%ae%x00%at%x00%B", c)
	if err != nil {
		return "", err
	}
	f := strings.SplitN(text, "\x00", 4)
	if len(f) != 4 {
		return "", fmt.Errorf("the commit %s can't be read", hex12(c))
	}
	author := []string{"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1], "GIT_AUTHOR_DATE=@" + f[2] + " +0000"}
	return j.next(ctx, append(author, names[3:]...), f[3]+"\n", joined, onto, out)
}

// fetch brings what the agent committed into the engine's repository, checked
// (git-index-pack(1), --strict), and lists it, the oldest first.
func (j *joining) fetch(ctx context.Context) (head string, list []string, err error) {
	if head, err = j.d.headOf(ctx, j.Repository, j.t, j.j.State); err != nil {
		return "", nil, err
	}
	if head == "" {
		return "", nil, core.Errorf(core.Conflict, "mode: %s has nothing checked out; allowed: squash", j.t.Agent).With("field", "mode")
	}
	if err := j.d.commits(ctx, j.Repository, j.t, head); err != nil {
		return "", nil, fmt.Errorf("take over the commits of %s: %w", j.t.Agent, err)
	}
	text, err := j.Do(ctx, "rev-list", "--reverse", "--topo-order", "--no-merges", fmt.Sprintf("--max-count=%d", maxCommits+1), head, "^"+j.t.Head)
	if list = strings.Fields(text); err == nil && len(list) > maxCommits {
		err = core.Errorf(core.Conflict, "mode: %s has made more than %d commits; allowed: squash", j.t.Agent, maxCommits).With("field", "mode")
	}
	return head, list, err
}
