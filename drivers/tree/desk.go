package tree

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// Desk keeps the files of trees on the machine of a host's keeper, and does with them
// what the engine asks for. What they are made of lies in repositories beside them that
// the engine fills, as those of a user would: a tree reads their objects.
type Desk struct {
	d   *Driver
	dir string

	mu sync.Mutex // guards which trees and sources there are
}

// Below a desk's directory.
const (
	worksName   = "work"    // trees, as Options.Dir has them
	statesName  = "states"  // what is kept of them, as Options.Kept
	sourcesName = "sources" // what they are made of, by sourceOf
)

// hosted stands for the tenant where all is one's.
const hosted = "t_host"

// NewDesk makes one. It runs nothing yet.
func NewDesk(cells *cell.Supervisor, own *safeopen.Own, dir string) (*Desk, error) {
	d, err := New(Options{Cells: cells, Own: own, Dir: filepath.Join(dir, worksName), Kept: filepath.Join(dir, statesName)})
	return &Desk{d: d, dir: dir}, err
}

// made is what a tree there was made of, in a file beside it.
type made struct {
	Kind   tree.Kind `json:"kind"`
	Source string    `json:"source"`
	At     int64     `json:"at"` // nanoseconds: another tree of the same agent is another one
}

const madeName = ".made"

// here is a tree as this machine has it: what it is made of lies here.
func (k *Desk) here(t tree.Tree) tree.Tree {
	t.TenantID, t.Host = hosted, ""
	t.Path = k.d.place(t)
	t.Source = filepath.Join(k.dir, sourcesName, sourceOf(t))
	return t
}

// Serve answers one request of an engine.
func (k *Desk) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	var q request
	if err := desk.Read(lines, &q); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	a, more, err := k.answer(ctx, q, lines)
	if err != nil {
		a, more = answer{Failure: desk.Failed(err)}, nil
	}
	if err := desk.Write(out, a); err != nil || more == nil {
		return err
	}
	return more(out)
}

// names are what agents can be called.
var names = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

// answer does what is asked for; more writes what follows the answer, nil for nothing.
func (k *Desk) answer(ctx context.Context, q request, in io.Reader) (a answer, more func(io.Writer) error, err error) {
	for _, hash := range append([]string{q.Tree.BaseCommit, q.Tree.Since, q.From, q.To}, q.Have...) {
		if hash != "" && !git.IsHash(hash) {
			return a, nil, core.Invalid("commit", hash, "the hash of one")
		}
	}
	if !names().MatchString(q.Tree.Agent) || !filepath.IsAbs(q.Tree.Source) {
		return a, nil, core.Invalid("agent", q.Tree.Agent, "an agent with a tree")
	}
	if !q.Converts.valid() {
		return a, nil, core.Invalid("converts", fmt.Sprint(q.Converts.Settings), "known settings")
	}
	large := lfs.Pointer{OID: q.OID, Size: q.Size}
	for _, p := range append(q.Large, large) {
		if p != (lfs.Pointer{}) && !p.Valid() {
			return a, nil, core.Invalid("oid", p.OID, "that of an object of git LFS")
		}
	}
	t := k.here(q.Tree)
	switch q.Op {
	case opPlace:
		a, err = k.where(ctx, t, q)
		return a, nil, err
	case opBase, opFill, opMake:
		if err := k.begin(t); err != nil {
			return a, nil, err
		}
	}
	switch q.Op {
	case opBase:
		return a, nil, k.base(ctx, t, q, in)
	case opFill:
		return a, nil, k.large(t).Take(large, in)
	}
	r, err := k.d.repo(ctx, t)
	if err != nil {
		return a, nil, err
	}
	switch q.Op {
	case opMake:
		if t.Kind == tree.Plain {
			err = unpack(ctx, r, git.Call{}, in)
		} else {
			err = k.converted(ctx, t, q.Converts)
		}
		if err == nil {
			err = k.d.Make(ctx, t)
		}
		return a, nil, err
	case opState:
		return k.state(ctx, r, t, q.Have)
	case opCommits:
		w, err := committed(t)
		return a, sending(ctx, r, []string{filepath.Join(w.Dir, "objects")}, q.To, "^"+q.From), err
	case opLarge:
		theirs := lfs.Objects{Keep: r.LFS.Keep, Read: []string{filepath.Join(t.Path, ".git", "lfs", "objects")}}
		f, err := theirs.Open(large)
		return a, func(out io.Writer) error {
			defer f.Close()
			_, err := io.Copy(out, f)
			return err
		}, err
	case opLand:
		if err := unpack(ctx, r, git.Call{}, in); err != nil {
			return a, nil, err
		}
		return a, nil, k.d.bring(ctx, r, t, q.Key, q.From, q.To)
	}
	return a, nil, core.Invalid("op", q.Op, "a known one")
}

// bases are the refs of a source, or of its submodules, that keep what was sent.
const bases = "refs/swarmdeck/bases/"

// stored is the repository for what trees are made of: the source's, or one for all of
// its submodules.
func (k *Desk) stored(t tree.Tree, modules bool) git.Repository {
	r := git.Repository{Git: k.d.opt.git(), Dir: filepath.Join(t.Source, ".git")}
	if modules { // as git keeps those of submodules
		r.Dir = filepath.Join(r.Dir, "modules", "all")
	}
	return r
}

// large is where the objects of git LFS are that were sent of a source.
func (k *Desk) large(t tree.Tree) lfs.Objects {
	return lfs.Objects{Keep: filepath.Join(t.Source, ".git", "lfs", "objects")}
}

// where is the place of a tree, and what there is of its source.
func (k *Desk) where(ctx context.Context, t tree.Tree, q request) (a answer, err error) {
	a.Path = t.Path
	if _, err := k.d.opt.git().Run(ctx, git.Call{Args: []string{"version"}}); err != nil {
		return a, err
	}
	if _, err := git.FindWorktree(t.Source); err != nil {
		return a, nil // nothing yet
	}
	for _, p := range q.Large[:min(len(q.Large), maxHave)] {
		if k.large(t).Has(p) {
			a.Have = append(a.Have, p.OID)
		}
	}
	if len(q.Large) > 0 {
		return a, nil
	}
	var nobody *safeopen.Own
	root, err := nobody.Root(k.stored(t, q.Modules).Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	defer root.Close()
	there, err := git.Refs(root, "", bases)
	a.Have = slices.Sorted(maps.Values(there))
	a.Have = a.Have[:min(len(a.Have), maxHave)]
	return a, err
}

// begin has it written down which tree of an agent is to be there, and removes another.
func (k *Desk) begin(t tree.Tree) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := made{t.Kind, t.Source, t.CreatedAt.UnixNano()}
	if was, err := k.made(t.Agent); err == nil && was == now {
		return nil
	}
	home := k.d.home(t)
	if err := files.RemoveTree(home); err != nil {
		return fmt.Errorf("remove the tree that %s had: %w", t.Agent, err)
	}
	if err := os.MkdirAll(home, 0o711); err != nil {
		return fmt.Errorf("make a place for the tree: %w", err)
	}
	text := filepath.Join(home, madeName)
	if err := os.WriteFile(text, core.MustEncode(now), 0o600); err != nil {
		return err
	}
	return synced(text)
}

// made is which tree an agent has.
func (k *Desk) made(agent string) (m made, err error) {
	data, err := os.ReadFile(filepath.Join(k.dir, worksName, hosted, agent, madeName))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m, err
}

// base takes commits of a source, or of its submodules, into the repository for it.
func (k *Desk) base(ctx context.Context, t tree.Tree, q request, in io.Reader) error {
	k.mu.Lock()
	err := k.source(ctx, t)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	r := k.stored(t, q.Modules)
	if q.Modules {
		if err := r.Make(ctx, format(t)); err != nil {
			return err
		}
	}
	if q.Ends != "" {
		if err := os.WriteFile(filepath.Join(r.Dir, "shallow"), []byte(q.Ends), 0o600); err != nil {
			return err
		}
	}
	if err := unpack(ctx, r, git.Call{}, in); err != nil {
		return err
	}
	for _, commit := range q.Have {
		err = errors.Join(err, r.Name(ctx, commit, []string{bases + commit}))
	}
	return err
}

// source makes the repository for what trees are made of, unless it is there.
func (k *Desk) source(ctx context.Context, t tree.Tree) error {
	if _, err := git.FindWorktree(t.Source); err == nil {
		return nil
	}
	if err := os.MkdirAll(t.Source, 0o711); err != nil {
		return err
	}
	_, err := k.d.opt.git().Run(ctx, git.Call{Write: []string{t.Source}, Args: []string{
		"init", "--quiet", "--template=", "--object-format=" + format(t), "--initial-branch=swarmdeck", t.Source,
	}})
	return err
}

// converted has a source convert files as the one does that it stands for.
func (k *Desk) converted(ctx context.Context, t tree.Tree, c conversion) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.stored(t, false)
	for _, s := range c.Settings {
		if _, err := r.Do(ctx, "config", "core."+s[0], s[1]); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(r.Dir, "info"), 0o700); err != nil {
		return err
	}
	return renewed(filepath.Join(r.Dir, "info", "attributes"), c.Attributes)
}

// state takes the state of a tree; what the engine does not have of it follows.
func (k *Desk) state(ctx context.Context, r git.Repository, t tree.Tree, have []string) (a answer, more func(io.Writer) error, err error) {
	if _, err := os.Lstat(t.Path); err != nil {
		return a, nil, core.Errorf(core.Unavailable, "the files of the tree are not there any more: %v", err)
	}
	now, err := k.d.Now(ctx, t)
	if err != nil {
		return a, nil, err
	}
	a.Commit, a.Head = now.Commit, now.Head
	if slices.Contains(have, now.Commit) {
		return a, nil, nil
	}
	a.Pack = true
	revs := []string{now.Commit}
	for _, c := range have {
		if has(ctx, r, c) {
			revs = append(revs, "^"+c)
		}
	}
	loose, err := looseIn(ctx, r, now.Commit)
	if err != nil || len(loose) == 0 {
		return a, sending(ctx, r, nil, revs...), err
	}
	subs, _ := k.d.nested(r, git.Worktree{Path: t.Path}, "", 0)
	for _, l := range loose {
		revs = append(revs, l.from, l.to)
	}
	return a, sending(ctx, k.d.within(r, t, subs), nil, revs...), nil
}

// Reads are the places outside of its tree that an agent reads as its own.
func (k *Desk) Reads(agent string) []string {
	m, err := k.made(agent)
	if err != nil {
		return nil
	}
	return k.d.Reads(tree.Tree{Kind: m.Kind, Source: m.Source})
}

// Tidy removes the trees of agents that are no more, and what only these were made of.
func (k *Desk) Tidy(agents []string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	works := filepath.Join(k.dir, worksName, hosted)
	there, err := os.ReadDir(works)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	used := map[string]bool{}
	for _, e := range there {
		if !slices.Contains(agents, e.Name()) {
			err = errors.Join(err, files.RemoveTree(filepath.Join(works, e.Name())))
			continue
		}
		if m, bad := k.made(e.Name()); bad == nil {
			used[filepath.Base(m.Source)], used[sourceOf(tree.Tree{Source: m.Source})] = true, true
		}
	}
	for _, dir := range []string{filepath.Join(k.dir, sourcesName), filepath.Join(k.dir, statesName, hosted, "trees")} {
		all, _ := os.ReadDir(dir) // there may be none
		for _, e := range all {
			if !used[strings.TrimSuffix(e.Name(), ".git")] {
				err = errors.Join(err, files.RemoveTree(filepath.Join(dir, e.Name())))
			}
		}
	}
	return err
}
