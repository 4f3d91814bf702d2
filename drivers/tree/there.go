package tree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/desk"
	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// ask has the keeper of a tree's host do one thing. What give writes follows the request,
// and what follows the answer goes to take; both may be nil. What is begun is done once,
// also when the link is lost meanwhile.
func (d *Driver) ask(ctx context.Context, t tree.Tree, q request, give func(io.Writer) error, take func(io.Reader, answer) error) (a answer, err error) {
	ctx, stop := patiently(ctx)
	defer stop()
	q.Tree = t
	q.Tree.Setup, q.Tree.Pushed = nil, nil
	if d.opt.Hosts == nil {
		return a, core.Errorf(core.Unavailable, "host: no trees are made on hosts here").With("field", "host")
	}
	p, err := d.opt.Hosts.Start(t.TenantID, t.Host, cell.Spec{
		Run: "tree", Argv: []string{"tree"}, Whose: cell.Whose{Tenant: t.TenantID, Agent: t.Agent},
	}, keeper.Hosted{Desk: keeper.Trees, Whole: true})
	if err != nil {
		return a, err
	}
	defer p.CloseIO()
	defer context.AfterFunc(ctx, p.CloseIO)()
	defer func() {
		if why := context.Cause(ctx); err != nil && why != nil {
			err = why
		}
		err = wrap(err, "the tree of %s on host %s", t.Agent, t.Host)
	}()
	in, out, _ := p.Streams()
	if err = desk.Write(in, q); err == nil && give != nil {
		err = give(in)
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) { // else the answer says why
		return a, err
	}
	in.Close()
	lines := bufio.NewReader(out)
	if err = desk.Read(lines, &a); errors.Is(err, io.EOF) {
		select {
		case <-p.Done():
			err = core.Errorf(core.Unavailable, "it gave no answer: %s", p.Exit().Describe())
		case <-ctx.Done():
		}
	}
	if err != nil {
		return a, err
	}
	if err = a.check(); err == nil && take != nil {
		err = take(lines, a)
	}
	return a, err
}

// check reports an answer that can't be one.
func (a *answer) check() error {
	if err := a.Err(); err != nil {
		return err
	}
	bad := a.Path != "" && (!filepath.IsAbs(a.Path) || filepath.Clean(a.Path) != a.Path || desk.Clean(a.Path) != a.Path) ||
		len(a.Have) > maxHave || slices.ContainsFunc(a.Have, func(c string) bool { return !git.IsHash(c) }) ||
		a.Commit != "" && !git.IsHash(a.Commit) || a.Head != "" && !git.IsHash(a.Head)
	if bad {
		return core.Errorf(core.Unavailable, "the host's answer can't be one")
	}
	return nil
}

// placeThere finds where a tree would be, and what is there of its source.
func (d *Driver) placeThere(ctx context.Context, t tree.Tree) (answer, error) {
	a, err := d.ask(ctx, t, request{Op: opPlace}, nil, nil)
	if err == nil && a.Path == "" {
		err = core.Errorf(core.Unavailable, "host %s has no place for the tree of %s", t.Host, t.Agent)
	}
	return a, err
}

// makeThere is Make of a tree on another machine: what it is made of goes there first,
// once for all trees of the same source.
func (d *Driver) makeThere(ctx context.Context, t tree.Tree) error {
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	if t.Kind != tree.Git {
		_, err := d.ask(ctx, t, request{Op: opMake}, sending(ctx, r, nil, t.Since), nil)
		return err
	}
	if err := pin(t, pinnedHead, t.BaseCommit); err != nil {
		return fmt.Errorf("pin the base of the tree: %w", err)
	}
	if err := d.sendBase(ctx, r, t); err != nil {
		return err
	}
	if err := d.sendModules(ctx, r, t); err != nil {
		return err
	}
	if err := d.sendLarge(ctx, r, t); err != nil {
		return err
	}
	if _, err := d.ask(ctx, t, request{Op: opMake, Converts: d.conversion(r)}, nil, nil); err != nil {
		return err
	}
	if err := d.sendIncluded(ctx, r, t); err != nil {
		return fmt.Errorf("send what %s lists: %w", includes, err)
	}
	return nil
}

// knownThere bounds how many commits of a source are looked for that both sides have.
const knownThere = 20

// sendBase sends the commit that a tree is made from, with what the host lacks of its history.
func (d *Driver) sendBase(ctx context.Context, r git.Repository, t tree.Tree) error {
	at, err := d.placeThere(ctx, t)
	if err != nil || slices.Contains(at.Have, t.BaseCommit) {
		return err
	}
	revs := []string{t.BaseCommit}
	for _, c := range at.Have[:min(len(at.Have), knownThere)] {
		if has(ctx, r, c) {
			revs = append(revs, "^"+c)
		}
	}
	ends, err := os.ReadFile(filepath.Join(r.Dir, "shallow"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = d.ask(ctx, t, request{Op: opBase, Have: revs[:1], Ends: string(ends)}, sending(ctx, r, nil, revs...), nil)
	return err
}

// sendModules sends the commits of submodules that the source has and the host has not.
func (d *Driver) sendModules(ctx context.Context, r git.Repository, t tree.Tree) error {
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return gone(t, err)
	}
	from := kept(w)
	r.Objects = slices.Concat(r.Objects, moduleObjects(from))
	var all []string
	if err := moduleCommits(ctx, r, t.BaseCommit, 0, &all); err != nil || len(all) == 0 {
		return err
	}
	at, err := d.ask(ctx, t, request{Op: opPlace, Modules: true}, nil, nil)
	if err != nil {
		return err
	}
	var lacks, there []string
	for _, c := range all {
		if slices.Contains(at.Have, c) {
			there = append(there, "^"+c)
		} else {
			lacks = append(lacks, c)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	ends, err := moduleEnds(from)
	if err != nil {
		return err
	}
	_, err = d.ask(ctx, t, request{Op: opBase, Modules: true, Have: lacks, Ends: string(ends)}, sending(ctx, r, nil, append(there, lacks...)...), nil)
	return err
}

// moduleCommits finds the commits of submodules below one, as far as they are there.
func moduleCommits(ctx context.Context, r git.Repository, commit string, deep int, all *[]string) error {
	list, err := links(ctx, r, commit)
	if err != nil || deep >= modulesDeep {
		return err
	}
	for _, m := range list {
		if len(*all) >= maxModules || slices.Contains(*all, m.commit) || !has(ctx, r, m.commit) {
			continue
		}
		*all = append(*all, m.commit)
		if err := moduleCommits(ctx, r, m.commit, deep+1, all); err != nil {
			return err
		}
	}
	return nil
}

// sendLarge sends the objects of git LFS with which files are filled and that are not there.
func (d *Driver) sendLarge(ctx context.Context, r git.Repository, t tree.Tree) error {
	some, err := blobs(ctx, r, t.BaseCommit)
	if err != nil {
		return err
	}
	all, err := heldOf(ctx, r, t.BaseCommit, some)
	if err != nil {
		return err
	}
	large := map[lfs.Pointer]bool{}
	for _, h := range all {
		if h.OID != "" && h.Fills() && !large[h.Pointer] && r.LFS.Has(h.Pointer) {
			large[h.Pointer] = true
		}
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(large)), maxHave) {
		at, err := d.ask(ctx, t, request{Op: opPlace, Large: some}, nil, nil)
		if err != nil {
			return err
		}
		for _, p := range some {
			if slices.Contains(at.Have, p.OID) {
				continue
			}
			f, err := r.LFS.Open(p)
			if err != nil {
				return fmt.Errorf("read the object of git LFS %s: %w", p.OID, err)
			}
			_, err = d.ask(ctx, t, request{Op: opFill, OID: p.OID, Size: p.Size}, func(out io.Writer) error {
				_, err := io.Copy(out, f)
				return err
			}, nil)
			f.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sendIncluded sends the ignored files that the source lists.
func (d *Driver) sendIncluded(ctx context.Context, r git.Repository, t tree.Tree) error {
	var lines bytes.Buffer
	left := int64(maxIncludedBytes)
	err := d.included(ctx, r, t, func(from *safeopen.Root, name string) (int64, error) {
		in, info, err := listed(from, name, &left)
		if err != nil || in == nil {
			return -1, err
		}
		defer in.Close()
		object, err := r.Call(ctx, git.Call{In: io.LimitReader(in, info.Size()), Args: []string{"hash-object", "-w", "--no-filters", "--stdin"}})
		mode := "100644"
		if info.Mode()&0o100 != 0 {
			mode = modeExec
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, strings.TrimSpace(string(object)), name)
		return info.Size(), err
	})
	if err != nil || lines.Len() == 0 {
		return err
	}
	with, err := variant(ctx, r, t.Since, func(index string) error {
		_, err := r.Call(ctx, git.Call{Index: index, In: &lines, Args: []string{"update-index", "-z", "--index-info"}})
		return err
	})
	if err != nil {
		return err
	}
	return d.bringThere(ctx, r, t, "included", t.Since, with)
}

// bringThere is bring of a tree on another machine.
func (d *Driver) bringThere(ctx context.Context, r git.Repository, t tree.Tree, key, from, to string) error {
	_, err := d.ask(ctx, t, request{Op: opLand, Key: key, From: from, To: to}, sending(ctx, r, nil, to, "^"+from), nil)
	return err
}

// lastThere is the ref of the state that came last from another machine.
func lastThere(t tree.Tree) string { return "refs/trees/" + t.Agent + "/last" }

// nowThere takes the state of a tree on another machine, which refs name then.
func (d *Driver) nowThere(ctx context.Context, r git.Repository, t tree.Tree, refs []string) (s tree.State, err error) {
	q := request{Op: opState}
	for _, c := range []string{r.Ref(lastThere(t)), t.Since, t.BaseCommit} {
		if c != "" && !slices.Contains(q.Have, c) {
			q.Have = append(q.Have, c)
		}
	}
	a, err := d.ask(ctx, t, q, nil, func(in io.Reader, a answer) error {
		if a.Commit == "" {
			return core.Errorf(core.Unavailable, "the host's answer names no state")
		}
		if a.Pack {
			return unpack(ctx, r, foreign(), in)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	err = r.Name(ctx, a.Commit, append(refs, "refs/trees/"+t.Agent+"/"+a.Commit, lastThere(t)))
	return tree.State{Commit: a.Commit, Head: a.Head}, err
}

// headThere is the ref of the agent's commit that came last from another machine.
func headThere(t tree.Tree) string { return "refs/trees/" + t.Agent + "/head" }

// commitsThere brings what the agent committed on another machine into the engine's
// repository.
func (d *Driver) commitsThere(ctx context.Context, r git.Repository, t tree.Tree, head string) error {
	if head == "" || r.Ref(headThere(t)) == head {
		return nil
	}
	first, err := madeFrom(t)
	if err != nil || head == first {
		return err
	}
	_, err = d.ask(ctx, t, request{Op: opCommits, From: first, To: head}, nil, func(in io.Reader, _ answer) error { return unpack(ctx, r, foreign(), in) })
	if err != nil {
		return err
	}
	return r.Name(ctx, head, []string{headThere(t)})
}

// largeThere brings an object of git LFS from another machine into our keeping.
func (d *Driver) largeThere(ctx context.Context, r git.Repository, t tree.Tree, p lfs.Pointer) error {
	if (lfs.Objects{Keep: r.LFS.Keep}).Has(p) {
		return nil
	}
	_, err := d.ask(ctx, t, request{Op: opLarge, OID: p.OID, Size: p.Size}, nil, func(in io.Reader, _ answer) error { return r.LFS.Take(p, in) })
	return err
}
