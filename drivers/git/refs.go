package git

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

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
