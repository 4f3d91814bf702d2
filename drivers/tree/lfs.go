package tree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/drivers/resource/files"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/tree"
)

// lfsObjects is where git LFS keeps the objects of a repository.
func lfsObjects(w git.Worktree) string { return filepath.Join(w.Common, "lfs", "objects") }

// blob is a regular file of a commit.
type blob struct{ path, id string }

// held is a file that attributes leave to LFS.
type held struct {
	blob
	lfs.Pointer
	is bool // a pointer, else the content itself
}

// heldOf are those of some files that the attributes of a commit leave to LFS.
func heldOf(ctx context.Context, r git.Repository, commit string, some []blob) (all []held, err error) {
	if r.LFS == nil || len(some) == 0 {
		return nil, nil
	}
	_, err = r.Do(ctx, "grep", "-q", "-F", "-e", "filter=lfs", commit, "--", ":(glob)**/.gitattributes")
	if failed, ok := errors.AsType[*git.Failed](err); ok && failed.Code == 1 {
		return nil, nil // as in most repositories
	}
	if err != nil {
		return nil, err
	}
	index := filepath.Join(r.Dir, "index-lfs-"+strings.ToLower(rand.Text()[:10]))
	defer os.Remove(index)
	if _, err := r.Call(ctx, git.Call{Index: index, Args: []string{"read-tree", commit}}); err != nil {
		return nil, err
	}
	var paths strings.Builder
	for _, f := range some {
		paths.WriteString(f.path + "\x00")
	}
	out, err := r.Call(ctx, git.Call{Index: index, In: strings.NewReader(paths.String()), Args: []string{"check-attr", "--cached", "-z", "--stdin", "filter"}})
	if err != nil {
		return nil, err
	}
	fields := bytes.Split(out, []byte{0})
	for n, f := range some {
		if 3*n+2 < len(fields) && string(fields[3*n+2]) == "lfs" {
			all = append(all, held{blob: f})
		}
	}
	return all, read(ctx, r, all)
}

// read reads those that are pointers.
func read(ctx context.Context, r git.Repository, all []held) error {
	if len(all) == 0 {
		return nil
	}
	small := map[string]bool{}
	out, err := r.Call(ctx, git.Call{In: ids(all, nil), Args: []string{"cat-file", "--batch-check=%(objectname) %(objectsize)"}})
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		id, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(size); err == nil && n <= lfs.MaxPointer {
			small[id] = true
		}
	}
	if out, err = r.Call(ctx, git.Call{In: ids(all, small), Args: []string{"cat-file", "--batch"}}); err != nil {
		return err
	}
	texts := map[string][]byte{}
	for len(out) > 0 {
		head, rest, _ := bytes.Cut(out, []byte{'\n'})
		f := strings.Fields(string(head))
		if len(f) != 3 {
			return errChanges
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n < 0 || n+1 > len(rest) {
			return errChanges
		}
		texts[f[0]], out = rest[:n], rest[n+1:]
	}
	for n := range all {
		h := &all[n]
		h.Pointer, h.is = lfs.Parse(texts[h.id])
		h.is = h.is || small[h.id] && len(texts[h.id]) == 0 // nothing is its own pointer
	}
	return nil
}

// ids are the names of blobs, a line each; of those that are among some, if any are said.
func ids(all []held, among map[string]bool) *strings.Reader {
	var b strings.Builder
	for _, h := range all {
		if among == nil || among[h.id] {
			b.WriteString(h.id + "\n")
		}
	}
	return strings.NewReader(b.String())
}

// blobs are the regular files of a commit.
func blobs(ctx context.Context, r git.Repository, commit string) (all []blob, err error) {
	out, err := r.Call(ctx, git.Call{Args: []string{"ls-tree", "-r", "-z", "--full-tree", commit}})
	for line := range bytes.SplitSeq(out, []byte{0}) {
		meta, path, ok := strings.Cut(string(line), "\t")
		if f := strings.Fields(meta); ok && len(f) == 3 && f[1] == "blob" && f[0] != modeLink {
			all = append(all, blob{path, f[2]})
		}
	}
	return all, err
}

// brought are the regular files that the commits from one to another bring.
func brought(ctx context.Context, r git.Repository, from, to string) (all []blob, err error) {
	out, err := r.Call(ctx, git.Call{Args: []string{
		"log", "--format=", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-merges=first-parent", "--diff-filter=d", from + ".." + to,
	}})
	if err != nil {
		return nil, err
	}
	fields := bytes.Split(out, []byte{0})
	for i := 0; i < len(fields); i++ {
		meta, is := strings.CutPrefix(strings.TrimSpace(string(fields[i])), ":")
		if !is {
			continue
		}
		f := strings.Fields(meta)
		if i++; len(f) != 5 || i >= len(fields) {
			return nil, errChanges
		}
		if f[1] == "100644" || f[1] == modeExec {
			all = append(all, blob{string(fields[i]), f[3]})
		}
	}
	return all, nil
}

// unfilled are the files of a commit that stay pointers, because their objects are not
// there or are too large.
func unfilled(ctx context.Context, r git.Repository, commit string) (p tree.Pointers, err error) {
	some, err := blobs(ctx, r, commit)
	if err != nil {
		return p, err
	}
	all, err := heldOf(ctx, r, commit, some)
	for _, h := range all {
		if h.is && h.OID != "" && (!h.Fills() || !r.LFS.Has(h.Pointer)) {
			if p.Files++; p.Files == 1 {
				p.First = core.Clip(h.path)
			}
		}
	}
	return p, err
}

// taking are the files of LFS that commits bring, whose objects are in our keeping or
// with the operator by then. What the agent's own git LFS made is kept too.
func (d *Driver) taking(ctx context.Context, r git.Repository, t tree.Tree, from, to string) ([]held, error) {
	if r.LFS == nil {
		return nil, nil
	}
	some, err := brought(ctx, r, from, to)
	if err != nil {
		return nil, err
	}
	all, err := heldOf(ctx, r, to, some)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	theirs := lfs.Objects{Keep: r.LFS.Keep, Read: []string{filepath.Join(t.Path, ".git", "lfs", "objects")}}
	var known map[string]bool
	left := d.opt.Most.Bytes
	for _, h := range all {
		switch {
		case !h.is:
			return nil, core.Errorf(core.Conflict, "%s is a file of git LFS by .gitattributes, and what %s committed holds its content itself; merge with --squash, which takes the files as they lie, or let %s commit it with git-lfs", h.path, t.Agent, t.Agent).With("field", "agent").With("path", h.path)
		case h.OID == "" || r.LFS.Has(h.Pointer):
			continue
		}
		if left -= h.Size; left < 0 {
			return nil, core.Errorf(core.Conflict, "%s: objects of git LFS of more than %d bytes are not taken over", h.path, d.opt.Most.Bytes).With("field", "agent").With("path", h.path)
		}
		if t.Host == "" && theirs.Put(h.Pointer) == nil || t.Host != "" && d.largeThere(ctx, r, t, h.Pointer) == nil {
			continue
		}
		if known == nil {
			if known, err = ofBase(ctx, r, from); err != nil {
				return nil, err
			}
		}
		if !known[h.id] {
			return nil, core.Errorf(core.Conflict, "%s is a pointer of git LFS to an object that is nowhere here (%s, %d bytes); let %s write the file itself, or put the object into %s with git lfs fetch", h.path, h.OID[:12], h.Size, t.Agent, t.Source).With("field", "agent").With("path", h.path)
		}
	}
	return all, nil
}

// maxPointerLines is how many lines a pointer has whose content was no pointer before.
const maxPointerLines = 3

// sized tells the sizes of the objects of changed files that are pointers.
func sized(ctx context.Context, r git.Repository, changes []tree.Change, ids []string) error {
	if r.LFS == nil || !r.LFS.Any() {
		return nil
	}
	var all []held
	var which []int
	for n, c := range changes {
		if !c.Binary && c.Status != "deleted" && c.Added <= maxPointerLines {
			all, which = append(all, held{blob: blob{c.Path, ids[n]}}), append(which, n)
		}
	}
	err := read(ctx, r, all)
	for n, h := range all {
		if c := &changes[which[n]]; h.is && h.OID != "" {
			c.LFS, c.Binary, c.Added, c.Removed = h.Size, true, 0, 0
		}
	}
	return err
}

// ofBase are the objects of a commit's files: whatever is there, somebody else has.
func ofBase(ctx context.Context, r git.Repository, commit string) (map[string]bool, error) {
	all, err := blobs(ctx, r, commit)
	known := map[string]bool{}
	for _, b := range all {
		known[b.id] = true
	}
	return known, err
}

// lfsPut puts the objects that commits need into the operator's repository.
func lfsPut(r git.Repository, w git.Worktree, all []held) error {
	into := lfs.Objects{Keep: lfsObjects(w), Read: []string{r.LFS.Keep}}
	root, err := w.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, h := range all {
		if h.OID == "" {
			continue
		}
		if err := mkdirs(root, filepath.Join("lfs/objects", h.OID[:2], h.OID[2:4])); err != nil {
			return fmt.Errorf("%s: %w", w.Common, err)
		}
		if err := into.Put(h.Pointer); err != nil && !errors.Is(err, os.ErrNotExist) { // which the base has
			return fmt.Errorf("put the object of %s into %s: %w", h.path, into.Keep, err)
		}
	}
	return nil
}

// mkdirs makes directories of somebody's repository, through no link.
func mkdirs(root *safeopen.Root, path string) error {
	for i, c := range path + "/" {
		if c == '/' {
			if err := root.At(path[:i], (*safeopen.Place).Mkdir); err != nil {
				return err
			}
		}
	}
	return nil
}

// uses reports whether an operator works with git LFS in a repository: by the
// configuration that is theirs, or by what it has left there.
func usesLFS(ctx context.Context, r git.Repository, w git.Worktree) bool {
	if configuredLFS(ctx, r) {
		return true
	}
	info, err := os.Stat(lfsObjects(w))
	return err == nil && info.IsDir()
}

func configuredLFS(ctx context.Context, r git.Repository) bool {
	return r.Configured(ctx, "filter.lfs.process") != "" || r.Configured(ctx, "filter.lfs.clean") != ""
}

// lfsPush sends the objects of what is pushed elsewhere, with the operator's own git LFS
// and nothing of a repository's.
func (d *Driver) lfsPush(ctx context.Context, r git.Repository, t tree.Tree, p tree.Push, to tree.Place) error {
	tip, err := d.Tip(ctx, t)
	if err != nil {
		return err
	}
	all, err := d.taking(ctx, r, t, tip, p.Commit)
	if err != nil {
		return err
	}
	var oids []string
	for _, h := range all {
		if h.OID != "" && r.LFS.Has(h.Pointer) && !slices.Contains(oids, h.OID) {
			oids = append(oids, h.OID)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	if to.Here() {
		return lfsPut(r, git.Worktree{Common: to.Path}, all)
	}
	if !configuredLFS(ctx, r) {
		return core.Errorf(core.Unavailable, "%s is a file of git LFS, and git-lfs is not in your own git configuration: run git lfs install, and push again", all[0].path).With("field", "agent").With("path", all[0].path)
	}
	// git LFS sends what lies in the repository that it runs in.
	beside := filepath.Join(r.Dir, "lfs")
	defer files.RemoveTree(beside) //nolint:errcheck // swept by the next push
	if err := files.RemoveTree(beside); err != nil {
		return err
	}
	from := lfs.Objects{Keep: filepath.Join(beside, "objects"), Read: append([]string{r.LFS.Keep}, r.LFS.Read...)}
	for _, h := range all {
		if h.OID != "" && r.LFS.Has(h.Pointer) {
			if err := from.Put(h.Pointer); err != nil {
				return fmt.Errorf("push the object of %s: %w", h.path, err)
			}
		}
	}
	for some := range slices.Chunk(oids, 200) {
		args := append([]string{"lfs", "push", "--object-id", p.URL}, some...)
		if _, err := r.Call(ctx, git.Call{Own: true, Args: args}); err != nil {
			return wrap(err, "push %d objects of git LFS to %s", len(oids), p.URL)
		}
	}
	return nil
}
