package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// includes lists files that git ignores and a tree has all the same, by patterns
// as of gitignore(5).
const includes = ".worktreeinclude"

// Bounds of what is copied besides.
const (
	maxIncluded      = 1000
	maxIncludedBytes = 1 << 30
)

// Make implements tree.Driver. The files are laid out beside their place, and put
// there by one rename.
func (d *Driver) Make(ctx context.Context, t tree.Tree) error {
	if t.Host != "" {
		return d.makeThere(ctx, t)
	}
	if _, err := os.Lstat(t.Path); err == nil {
		return nil // made, and not written down
	}
	r, err := d.repo(ctx, t)
	if err != nil {
		return err
	}
	stage := filepath.Join(d.home(t), ".making")
	if err := files.RemoveTree(stage); err != nil {
		return err
	}
	if err := os.MkdirAll(d.home(t), 0o711); err != nil {
		return fmt.Errorf("make a place for the tree: %w", err)
	}
	index := filepath.Join(d.home(t), ".index")
	if t.Kind == tree.Git {
		if err := pin(t, pinnedHead, t.BaseCommit); err != nil {
			return fmt.Errorf("pin the base of the tree: %w", err)
		}
		if err := d.begin(ctx, r, t, stage); err != nil {
			return err
		}
		index = filepath.Join(stage, ".git", "index")
	} else if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	defer os.Remove(filepath.Join(d.home(t), ".index"))
	if err := lay(ctx, r, t.Since, stage, index); err != nil {
		return fmt.Errorf("lay out the files of %s: %w", hex12(t.Since), err)
	}
	if err := d.modules(ctx, r, t, t.Since, stage); err != nil {
		return err
	}
	if t.Kind == tree.Git {
		if err := d.include(ctx, r, t, stage); err != nil {
			return fmt.Errorf("copy what %s lists: %w", includes, err)
		}
	}
	// The next look at the tree finds its files as this index has them.
	if _, err := git.CopyIndex(index, r.Known(git.Worktree{Path: t.Path})); err != nil {
		return err
	}
	if err := settle(stage); err != nil {
		return err
	}
	return os.Rename(stage, t.Path)
}

// settle has all of a file system's changes on the disk.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// lay writes the files of a state to a directory, with an index that knows them.
func lay(ctx context.Context, r git.Repository, state, dir, index string) error {
	if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, args := range [][]string{{"read-tree", state}, {"checkout-index", "--all", "--quiet", "-u"}} {
		if _, err := r.Call(ctx, git.Call{Dir: dir, WorkTree: dir, Index: index, Write: []string{dir, filepath.Dir(index)}, Args: args}); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the repository of a tree, with the agent's branch checked out and
// nothing in it that leads elsewhere but the objects.
func (d *Driver) begin(ctx context.Context, r git.Repository, t tree.Tree, stage string) error {
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	if err := d.fresh(ctx, r, t, stage, r.Objects); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.home(t), borrowed), []byte(strings.Join(r.Objects, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	dot := filepath.Join(stage, ".git")
	small := map[string]string{"refs/heads/" + t.Branch: t.BaseCommit + "\n"}
	if t.Base != "" && t.Base != "swarmdeck" && !strings.HasPrefix(t.Base, t.Branch) {
		small["refs/heads/"+t.Base] = t.BaseCommit + "\n"
	}
	for name, text := range small {
		path := filepath.Join(dot, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return gone(t, err)
	}
	if configuredLFS(ctx, r) {
		if err := appended(filepath.Join(dot, "config"), filterOfLFS); err != nil {
			return err
		}
	}
	return shallow(w, filepath.Join(dot, "shallow"))
}

// fresh makes an empty repository of an agent's in a directory, that reads objects of
// others.
func (d *Driver) fresh(ctx context.Context, r git.Repository, t tree.Tree, dir string, objects []string) error {
	if _, err := r.Git.Run(ctx, git.Call{Write: []string{dir}, Args: []string{"init", "--quiet", "--template=", "--object-format=" + format(t), "--initial-branch=" + t.Branch, dir}}); err != nil {
		return err
	}
	dot := filepath.Join(dir, ".git")
	as := d.conversion(r)
	if err := appended(filepath.Join(dot, "config"), fmt.Sprintf("[user]\n\tname = %s\n\temail = %s\n", t.Agent, email(t.Agent))+as.config()); err != nil {
		return err
	}
	if as.Attributes != "" {
		if err := os.Mkdir(filepath.Join(dot, "info"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dot, "info", "attributes"), []byte(as.Attributes), 0o644); err != nil {
			return err
		}
	}
	info := filepath.Join(dot, "objects", "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "alternates"), []byte(strings.Join(objects, "\n")+"\n"), 0o644)
}

// filterOfLFS is what git lfs install writes: by it the git of an agent sees files of
// LFS as they are kept.
const filterOfLFS = `[filter "lfs"]
	clean = git-lfs clean -- %f
	smudge = git-lfs smudge -- %f
	process = git-lfs filter-process
	required = true
`

// appended writes at the end of a file.
func appended(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// email is the address of an agent, which leads nowhere (RFC 2606).
func email(agent string) string { return agent + "@swarmdeck.invalid" }

// What is pinned: the commit that the tree was made from, on which its agent's own
// commits stand, and the one of the base that was brought into it last.
const (
	pinnedHead = "head"
	pinnedBase = "base"
)

// pinned is the ref of a source that keeps the objects which a tree needs.
func pinned(t tree.Tree, what string) string {
	return "refs/swarmdeck/" + t.TenantID + "/" + t.Agent + "/" + what
}

// pin keeps a commit of a source for a tree; "" lets it go.
func pin(t tree.Tree, what, commit string) error {
	w, err := git.FindWorktree(t.Source)
	if err != nil {
		return gone(t, err)
	}
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	if commit == "" {
		if err := root.At(pinned(t, what), (*safeopen.Place).Remove); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return unpacked(w, pinned(t, what))
	}
	for _, dir := range []string{"refs", "refs/swarmdeck", "refs/swarmdeck/" + t.TenantID, "refs/swarmdeck/" + t.TenantID + "/" + t.Agent} {
		if err := root.At(dir, (*safeopen.Place).Mkdir); err != nil {
			return err
		}
	}
	return root.At(pinned(t, what), func(p *safeopen.Place) error {
		_, err := p.Put([]byte(commit+"\n"), nil)
		return err
	})
}

// unpacked takes a ref out of those that git has packed, under the lock that git
// takes for it.
func unpacked(w git.Worktree, ref string) error {
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	const most = 256 << 20
	path := filepath.Join(w.Common, "packed-refs")
	data, err := root.Read("packed-refs", most)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Contains(data, []byte(" "+ref+"\n")) {
		return nil
	}
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return core.Errorf(core.Unavailable, "another git works there: %v", err)
	}
	defer os.Remove(lock.Name())
	if data, err = root.Read("packed-refs", most); err == nil { // nobody changes it from now on
		var kept []byte
		peeled := false
		for line := range bytes.Lines(data) {
			if peeled = peeled && line[0] == '^' || bytes.HasSuffix(line, []byte(" "+ref+"\n")); !peeled {
				kept = append(kept, line...)
			}
		}
		_, err = lock.Write(kept)
	}
	if err = errors.Join(err, lock.Sync(), lock.Close()); err != nil {
		return err
	}
	return os.Rename(lock.Name(), path)
}

// include copies the ignored files that the source lists.
func (d *Driver) include(ctx context.Context, r git.Repository, t tree.Tree, stage string) error {
	left := int64(maxIncludedBytes)
	return d.included(ctx, r, t, func(from *safeopen.Root, name string) (int64, error) { return copied(from, stage, name, &left) })
}

// included finds the ignored files that the source lists in the base: what lies in
// its directory meanwhile may be another agent's word.
func (d *Driver) included(ctx context.Context, r git.Repository, t tree.Tree, each func(from *safeopen.Root, name string) (int64, error)) error {
	if t.Included == nil {
		return nil
	}
	patterns, err := d.File(ctx, t, t.BaseCommit, includes)
	if errors.Is(err, core.Kind(core.InvalidInput)) {
		return nil // there is none
	}
	if err != nil {
		return err
	}
	from, err := d.opt.Own.Root(t.Source)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(d.home(t), 0o711); err != nil {
		return err
	}
	index := filepath.Join(d.home(t), ".include")
	list := filepath.Join(d.home(t), ".patterns")
	defer os.Remove(index)
	defer os.Remove(list)
	if err := os.WriteFile(list, patterns, 0o600); err != nil {
		return err
	}
	call := git.Call{Dir: t.Source, WorkTree: t.Source, Index: index, Write: []string{d.home(t)}}
	call.Args = []string{"read-tree", t.Since}
	if _, err := r.Call(ctx, call); err != nil {
		return err
	}
	call.Args = []string{"ls-files", "-z", "--others", "--ignored", "--exclude-from=" + list}
	names, err := r.Call(ctx, call)
	if err != nil {
		return err
	}
	for n, name := range strings.Split(strings.TrimRight(string(names), "\x00"), "\x00") {
		if name == "" || strings.HasPrefix(name, ".git/") {
			continue
		}
		if n >= maxIncluded {
			return core.Errorf(core.InvalidInput, "%s: more than %d files", includes, maxIncluded)
		}
		size, err := each(from, name)
		if err != nil {
			return err
		}
		if size >= 0 {
			t.Included.Add(name, size)
		}
	}
	return nil
}

// listed opens a file that a source lists, if it is one; left is how much more may be
// copied.
func listed(from *safeopen.Root, name string, left *int64) (in *os.File, info fs.FileInfo, err error) {
	in, err = from.Open(name)
	if err != nil {
		return nil, nil, nil // a link, a pipe, or gone: no file to copy
	}
	if info, err = in.Stat(); err == nil {
		if *left -= info.Size(); *left < 0 {
			err = core.Errorf(core.InvalidInput, "%s: more than %d bytes; %q alone has %d", includes, int64(maxIncludedBytes), name, info.Size())
		}
	}
	if err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, info, nil
}

// copied copies one regular file to the same name below a new directory, which
// nobody else knows yet. It returns its size, -1 of what is none.
func copied(from *safeopen.Root, stage, name string, left *int64) (int64, error) {
	in, info, err := listed(from, name, left)
	if err != nil || in == nil {
		return -1, err
	}
	defer in.Close()
	path := filepath.Join(stage, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return -1, err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return -1, err
	}
	_, err = io.Copy(out, io.LimitReader(in, info.Size()))
	return info.Size(), errors.Join(err, out.Close())
}

func (d *Driver) Remove(ctx context.Context, t tree.Tree) error {
	if r, err := d.repo(ctx, t); err == nil && t.Host == "" { // else its source is gone: nothing there is read any more
		subs, _ := d.nested(r, git.Worktree{Path: t.Path}, "", 0)
		for _, w := range subs {
			if err := r.Forget(ctx, w); err != nil {
				return err
			}
		}
	}
	if err := files.RemoveTree(d.home(t)); err != nil {
		return fmt.Errorf("remove the tree: %w", err)
	}
	if t.Kind == tree.Git {
		for _, what := range []string{pinnedHead, pinnedBase} {
			if err := pin(t, what, ""); err != nil && core.AsError(err).Code != core.Unavailable {
				return fmt.Errorf("let the base of the tree go: %w", err)
			}
		}
	}
	r, err := d.repo(ctx, t)
	if err != nil {
		return nil // its source is gone: nothing there is read any more
	}
	if err := r.Forget(ctx, git.Worktree{Path: t.Path}); err != nil {
		return err
	}
	refs, err := r.Do(ctx, "for-each-ref", "--format=delete %(refname)", "refs/trees/"+t.Agent+"/")
	if err != nil || refs == "" {
		return err
	}
	_, err = r.Call(ctx, git.Call{In: strings.NewReader(refs + "\n"), Args: []string{"update-ref", "--stdin"}})
	return err
}
