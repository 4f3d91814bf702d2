package git

import (
	"bytes"
	"context"
	"crypto/sha1" // #nosec: git's own checksum
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// state is the last state of a work tree. It is written beside the index of that,
// and holds as long as both belong together and the ref of it is there, which
// keeps its objects.
type state struct {
	Index   string `json:"index"` // checksum of the index
	Tree    string `json:"tree"`
	Commit  string `json:"commit"`
	Message string `json:"message"`
	Files   int    `json:"files"` // at most as many
	Bytes   int64  `json:"bytes"` // at most as many
	// Links are the repositories in the repository, of which git lists no files.
	Links []string `json:"links,omitempty"`

	same bool // nothing has changed since
}

// Ends of the files beside an index, and of the refs.
const (
	lastEnd  = ".last"
	lastRefs = "refs/last/"
)

// maxLast bounds the file of a state, in bytes: a branch is the longest in it.
const maxLast = 64 << 10

// lastRef keeps the last state of the work tree with an index.
func lastRef(known string) string { return lastRefs + filepath.Base(known) }

// last is the state that an index is of; there is none where anything of it is
// missing, or of another.
func (r Repository) last(known, index string) (s state, there bool) {
	sum, err := checksum(index)
	if err != nil {
		return s, false
	}
	info, err := os.Stat(known + lastEnd)
	if err != nil || info.Size() > maxLast {
		return s, false
	}
	data, err := os.ReadFile(known + lastEnd)
	if err != nil || json.Unmarshal(data, &s) != nil {
		return s, false
	}
	return s, s.Index == sum && IsHash(s.Commit) && IsHash(s.Tree) && r.Ref(lastRef(known)) == s.Commit
}

// Links are the repositories in a work tree as its last state has them.
func (r Repository) Links(w Worktree) []string {
	known := r.Known(w)
	s, there := r.last(known, known)
	if !there {
		return nil
	}
	return s.Links
}

// write makes an index the known one, and puts the state that it is of beside it.
// Killed in between, they do not belong together.
func (s state) write(index, known string) (err error) {
	if s.Index, err = checksum(index); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	beside := index + lastEnd
	defer os.Remove(beside)
	if err := os.WriteFile(beside, data, 0o600); err != nil {
		return err
	}
	if err := os.Rename(index, known); err != nil {
		return err
	}
	return os.Rename(beside, known+lastEnd)
}

// used keeps a state from being swept.
func (state) used(known string) {
	now := time.Now()
	_ = os.Chtimes(known+lastEnd, now, now)
}

// checksum is that of an index, which stands at its end (gitformat-index(5)).
func checksum(index string) (string, error) {
	f, err := os.Open(index)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	sum := make([]byte, 20) // of SHA-256 the last 20 bytes tell as much
	if _, err := f.ReadAt(sum, max(info.Size()-int64(len(sum)), 0)); err != nil {
		return "", fmt.Errorf("read the checksum of an index: %w", err)
	}
	return hex.EncodeToString(sum), nil
}

// intact reports that an index ends with the checksum of what is before it: git reads
// one that was cut off as if it were whole.
func intact(index string) bool {
	data, err := os.ReadFile(index)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	for _, sum := range []func([]byte) []byte{
		func(b []byte) []byte { h := sha1.Sum(b); return h[:] },
		func(b []byte) []byte { h := sha256.Sum256(b); return h[:] },
	} {
		if at := len(data) - len(sum(nil)); at > 0 && bytes.Equal(sum(data[:at]), data[at:]) {
			return true
		}
	}
	return false
}

// linkIndex gives an index, if it is there, another name. Git changes none in its
// place, but puts another there.
func linkIndex(known, index string) error {
	err := os.Link(known, index)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_, err = CopyIndex(known, index) // a file system without links
		return err
	}
	return nil
}

// CopyIndex copies an index with its time, if it is there, from and to no link. By that time git knows
// which files may have changed in the very second that it looked at them: of a
// later one it would believe that none did (Racy Git, api-index-skel of git).
func CopyIndex(from, to string) (there bool, err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return false, err
	}
	at := unix.NsecToTimespec(info.ModTime().UnixNano())
	return true, unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// since takes what changed in a work tree since the state that its index is of. An
// error says that the whole tree is to be looked at.
func (r Repository) since(ctx context.Context, w Worktree, index string, was state, most Limits) (now state, err error) {
	for _, name := range was.Links {
		if _, err := os.Lstat(filepath.Join(w.Path, name, ".git")); err != nil && !emptyDir(w.Path, name) {
			return was, errors.New("a repository in the repository has become files: they are to be listed")
		}
	}
	names, err := r.changed(ctx, w, index)
	now = was
	if err != nil || len(names) == 0 {
		now.same = true
		return now, err
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		info, err := os.Lstat(filepath.Join(w.Path, string(name)))
		if err == nil && info.IsDir() && !bytes.HasSuffix(name, []byte("/")) {
			return now, errors.New("a file has become a directory: what is in it is to be listed")
		}
		now.Files++
		if err == nil && info.Mode().IsRegular() {
			now.Bytes += info.Size()
		}
	}
	if now.Files > most.Files || now.Bytes > most.Bytes {
		return now, errors.New("it may be beyond its limits: its files are to be counted")
	}
	// A repository in the repository is listed as a directory. Its status is not asked for here.
	for name := range bytes.SplitSeq(names, []byte{0}) {
		if name, is := bytes.CutSuffix(name, []byte("/")); is {
			now.Links = append(slices.Clip(now.Links), string(name))
		}
	}
	names = bytes.ReplaceAll(names, []byte("/\x00"), []byte{0})
	if _, err := r.over(ctx, w, index, names, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
		return now, err
	}
	tree, err := r.over(ctx, w, index, nil, "write-tree")
	now.Tree = strings.TrimSpace(string(tree))
	return now, err
}

// changed are the paths of a work tree that are not as an index has them, each with
// a NUL behind it. What git would ask a repository in the repository, but for its
// commit, is not asked.
func (r Repository) changed(ctx context.Context, w Worktree, index string) ([]byte, error) {
	var lists [2][]byte
	var errs [2]error
	var both sync.WaitGroup
	for n, args := range [2][]string{
		{"diff-files", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty"},
		{"ls-files", "-z", "--others", "--exclude-standard"},
	} {
		both.Go(func() { lists[n], errs[n] = r.over(ctx, w, index, nil, r.within(w, args...)...) })
	}
	both.Wait()
	return bytes.Join(lists[:], nil), errors.Join(errs[:]...)
}

// Forget removes what is kept of a work tree's last state.
func (r Repository) Forget(ctx context.Context, w Worktree) error {
	known := r.Known(w)
	for _, path := range []string{known, known + lastEnd} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.Ref(lastRef(known)) == "" {
		return nil
	}
	_, err := r.Do(ctx, "update-ref", "-d", lastRef(known))
	return err
}

// Sweep removes what was last used before a time: what is kept of work trees, and
// what calls that were killed have left.
func (r Repository) Sweep(ctx context.Context, before time.Time) error {
	paths, err := filepath.Glob(filepath.Join(r.Dir, "index-*"))
	errs := []error{err}
	fresh := func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && !info.ModTime().Before(before)
	}
	for _, path := range paths {
		if fresh(path) || fresh(path+lastEnd) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	refs, err := r.Do(ctx, "for-each-ref", "--format=%(refname)", lastRefs)
	errs = append(errs, err)
	for ref := range strings.FieldsSeq(refs) {
		if _, err := os.Lstat(filepath.Join(r.Dir, strings.TrimPrefix(ref, lastRefs))); errors.Is(err, fs.ErrNotExist) {
			_, err := r.Do(ctx, "update-ref", "-d", ref)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
