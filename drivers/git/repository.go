package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/drivers/git/lfs"
	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// Repository is one of the engine's own.
type Repository struct {
	Git
	Dir string
	// Objects are directories of objects that it reads besides its own. What is
	// there already is not written again.
	Objects []string
	// LFS is where objects of git LFS are: files that attributes leave to LFS are kept
	// as pointers, and laid out with their contents. nil keeps them as they are.
	LFS *lfs.Objects
	// Converts is a repository beside, by whose settings and attributes, and those that lie
	// among the files of a work tree, these are converted as git itself would; "" keeps and
	// lays out every byte.
	Converts string
}

// exactly keeps every byte as it is: attributes of a tree do not change what
// is kept of it, but for LFS those by which files are LFS's. No other filter has a
// program in a repository of ours.
func (r Repository) exactly() string {
	filter := "-filter "
	if r.LFS != nil {
		filter = ""
	}
	return "* -text -eol -crlf " + filter + "-ident -working-tree-encoding -export-subst\n"
}

// Make makes the repository, of a format such as sha1, unless it is there.
// One call at a time may make it.
func (r Repository) Make(ctx context.Context, format string) error {
	attributes := filepath.Join(r.Dir, "info", "attributes")
	if was, err := os.ReadFile(attributes); err == nil && string(was) == r.exactly() {
		return nil
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("make a place for a repository: %w", err)
	}
	if _, err := r.Git.Run(ctx, Call{Write: []string{r.Dir}, Args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format, r.Dir}}); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(attributes), 0o700); err != nil {
		return err
	}
	return os.WriteFile(attributes, []byte(r.exactly()), 0o600) // last: it says that the repository is whole
}

// Call runs git on the repository, as c says further.
func (r Repository) Call(ctx context.Context, c Call) ([]byte, error) {
	c.GitDir, c.More = r.Dir, append(c.More, r.Objects...)
	c.Dir = cmp.Or(c.Dir, r.Dir)
	if r.Converts != "" && c.WorkTree != "" {
		c.GitDir, c.Objects = r.Converts, filepath.Join(r.Dir, "objects")
		c.Write = append(slices.Clip(c.Write), r.Dir, c.Objects)
	}
	if r.LFS != nil && c.WorkTree != "" {
		if err := r.filtered(&c); err != nil {
			return nil, fmt.Errorf("make the filter of LFS ready: %w", err)
		}
	}
	return r.Git.Run(ctx, c)
}

// filtered makes this program the filter of LFS.
func (r Repository) filtered(c *Call) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if r.LFS.Keep != "" {
		if err := os.MkdirAll(r.LFS.Keep, 0o700); err != nil {
			return err
		}
		c.Write = append(slices.Clip(c.Write), r.LFS.Keep)
	}
	c.Settings, c.Env = append(slices.Clip(c.Settings), lfs.Settings(self)...), append(slices.Clip(c.Env), r.LFS.Env()...)
	for _, path := range append([]string{self}, r.LFS.Read...) {
		if _, err := os.Stat(path); err == nil { // else it fails where a file is LFS's
			c.Read = append(slices.Clip(c.Read), path)
		}
	}
	return nil
}

// Do runs git on the repository alone, and returns what it prints, without
// space around it.
func (r Repository) Do(ctx context.Context, args ...string) (string, error) {
	out, err := r.Call(ctx, Call{Args: args})
	return strings.TrimSpace(string(out)), err
}

// Over runs git on the repository with the files of a tree and an index.
func (r Repository) Over(ctx context.Context, tree, index string, in []byte, args ...string) ([]byte, error) {
	return r.Call(ctx, Call{Dir: tree, WorkTree: tree, Index: index, In: bytes.NewReader(in), Args: args})
}

// Ref is the object that a ref of the repository names, "" for none.
func (r Repository) Ref(name string) string {
	var nobody *safeopen.Own
	root, err := nobody.Root(r.Dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	return Ref(root, name)
}

// Bounds of the refs of a repository.
const (
	MaxRefs   = 100_000
	maxRef    = 1 << 10   // bytes of a file that holds one
	maxPacked = 256 << 20 // bytes of packed-refs that are looked at
	maxDepth  = 32        // directories below refs/
)

// IsHash reports whether a text names an object, of SHA-1 or SHA-256.
func IsHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// Refs are the refs of somebody's repository below a name such as
// "refs/heads/", read without git: by name, the object that each names. root
// is a directory, prefix what leads from there to the repository's, "" or with
// a slash at its end. Symbolic refs are left out.
func Refs(root *safeopen.Root, prefix, below string) (map[string]string, error) {
	all := map[string]string{}
	if err := packedRefs(root, prefix, below, all); err != nil {
		return nil, err
	}
	return all, looseRefs(root, prefix, strings.TrimSuffix(below, "/"), all, 0)
}

// Ref is the object that one ref names, "" for a ref that is not there or can't
// be read.
func Ref(root *safeopen.Root, name string) string {
	if data, err := root.Read(name, maxRef); err == nil {
		if id := strings.TrimSpace(string(data)); IsHash(id) {
			return id
		}
		return ""
	}
	packed := map[string]string{}
	_ = packedRefs(root, "", name, packed) // what can't be read holds no ref
	return packed[name]
}

func tooMany() error {
	return core.Errorf(core.InvalidInput, "repository: more than %d refs", MaxRefs).With("field", "repository")
}

func packedRefs(root *safeopen.Root, prefix, below string, all map[string]string) error {
	f, err := root.Open(prefix + "packed-refs")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewScanner(io.LimitReader(f, maxPacked))
	for in.Scan() {
		id, name, ok := strings.Cut(in.Text(), " ")
		if !ok || !strings.HasPrefix(name, below) || !IsHash(id) {
			continue
		}
		if all[name] = id; len(all) > MaxRefs {
			return tooMany()
		}
	}
	return in.Err()
}

func looseRefs(root *safeopen.Root, prefix, name string, all map[string]string, depth int) error {
	entries, err := root.List(prefix+name, MaxRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && depth > maxDepth {
		err = core.Errorf(core.InvalidInput, "repository: refs lie more than %d directories deep", maxDepth).With("field", "repository")
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		ref := name + "/" + e.Name()
		switch {
		case e.IsDir():
			err = looseRefs(root, prefix, ref, all, depth+1)
		case e.Type().IsRegular() && !strings.HasSuffix(ref, ".lock"):
			var data []byte
			data, err = root.Read(prefix+ref, maxRef)
			if id := strings.TrimSpace(string(data)); err == nil && IsHash(id) {
				all[ref] = id
			}
		}
		if err != nil {
			return err
		}
		if len(all) > MaxRefs {
			return tooMany()
		}
	}
	return nil
}
