package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/record"
	"swarmdeck/engine/safeopen"
)

// Bounds of a load.
const (
	maxFiles = 5000
	maxPath  = 4000 // bytes
)

// skillFile tells whether a file of a directory is taken for a skill.
func skillFile(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(filepath.Base(name), ".")
	}
	return false
}

// filesOf lists the skill files of a path: itself, or those of a directory and
// its subdirectories, hidden ones left out.
func filesOf(path string) ([]string, error) {
	if !utf8.ValidString(path) || len(path) > maxPath {
		return nil, core.Invalid("path", path, fmt.Sprintf("at most %d bytes of UTF-8", maxPath))
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var found []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != path && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.IsDir() && skillFile(name) && !utf8.ValidString(name):
			return core.Invalid("path", name, "UTF-8")
		case !entry.IsDir() && skillFile(name):
			found = append(found, name)
		}
		if len(found) > maxFiles {
			return core.Errorf(core.InvalidInput, "path: %s holds more than %d skill files", path, maxFiles).With("field", "path").With("value", path)
		}
		return nil
	})
	if err != nil {
		return nil, pathError(path, err)
	}
	return found, nil
}

func pathError(path string, err error) error {
	code := core.Internal
	if _, known := errors.AsType[*core.Error](err); known {
		return err
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		code = core.NotFound
	case errors.Is(err, os.ErrPermission):
		code = core.Denied
	}
	if why, ok := errors.AsType[*os.PathError](err); ok {
		err = why.Err
	}
	return core.Errorf(code, "path: can't read %s: %v", path, err).With("field", "path").With("value", path)
}

// readFile reads one skill file; what stands in its way is a problem of it.
func readFile(own *safeopen.Own, path string) ([]byte, error) {
	f, err := own.File(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, pathError(path, err)
	}
	return data, nil
}

// readFiles reads and parses skill files, in the given order. skip tells by a
// file's content that it need not be looked at again; nil looks at all.
func readFiles(own *safeopen.Own, paths []string, skip func(path string, data []byte) bool) []Definition {
	defs := make([]*Definition, len(paths))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(len(paths), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := range next {
				data, err := readFile(own, paths[i])
				if err != nil {
					text := strings.TrimPrefix(core.AsError(err).Message, "path: ")
					defs[i] = &Definition{file: paths[i], problems: []document.Problem{{File: paths[i], Line: 1, Field: "file", Message: text}}}
				} else if skip == nil || !skip(paths[i], data) {
					d := parse(paths[i], data, filepath.Dir(paths[i]))
					defs[i] = &d
				}
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	all.Wait()
	var read []Definition
	for _, d := range defs {
		if d != nil {
			read = append(read, *d)
		}
	}
	return read
}

// FromCode is a skill that no file holds. The rules are those of a file.
func FromCode(s Skill) Definition {
	name := fmt.Sprintf("%s@%s", core.ClipTo(s.Name, 60), core.ClipTo(s.Version, 40))
	data, err := core.Encode(contentOf(&s))
	if err != nil {
		return Definition{file: name, problems: []document.Problem{{File: name, Line: 1, Field: "file", Message: err.Error()}}}
	}
	d := parse(name+".json", data, s.Runner.Dir)
	d.skill.Source, d.file = "", name
	for i := range d.problems {
		d.problems[i].File = name
	}
	return d
}

// Given is what a load is to take in.
type Given struct {
	Paths       []string     // absolute: files and directories, remembered and watched
	Definitions []Definition // written elsewhere; they are not watched
}

// origin is a definition and the path it was found by, "" for none.
type origin struct {
	Definition
	path string
}

// read reads everything that is given. A path that can't be read is an error.
func (g Given) read(own *safeopen.Own) ([]origin, error) {
	var files, from []string
	for _, path := range g.Paths {
		if !filepath.IsAbs(path) {
			return nil, core.Invalid("path", path, "an absolute path")
		}
		path = filepath.Clean(path)
		found, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, core.Errorf(core.NotFound, "path: no skill file (*.yaml, *.yml, *.json) in %s", path).With("field", "path").With("value", path)
		}
		for _, file := range found {
			if !slices.Contains(files, file) {
				files, from = append(files, file), append(from, path)
			}
		}
	}
	var all []origin
	for i, d := range readFiles(own, files, nil) {
		all = append(all, origin{d, from[i]})
	}
	for _, d := range g.Definitions {
		all = append(all, origin{d, ""})
	}
	return all, nil
}

// maxSources bounds what a tenant's skills are read from.
const maxSources = 1000

// covers tells whether a path is the source or below it.
func (s Source) covers(path string) bool {
	return path == s.Path || strings.HasPrefix(path, strings.TrimSuffix(s.Path, string(filepath.Separator))+string(filepath.Separator))
}

func covered(sources []Source, path string) bool {
	return slices.ContainsFunc(sources, func(s Source) bool { return s.covers(path) })
}

// newSources are the paths of a load that gave a skill and are not remembered.
func (r *registry) newSources(tenant string, p *plan, read []origin) []string {
	var paths []string
	for _, o := range read {
		if o.path != "" && len(o.problems) == 0 && !slices.Contains(paths, o.path) {
			paths = append(paths, o.path)
		}
	}
	for _, s := range r.Sources(tenant) {
		paths = slices.DeleteFunc(paths, func(path string) bool { return path == s.Path })
	}
	return paths
}

// Forget stops reading skills from a file or directory that was loaded. What
// was loaded from it stays.
func (r *registry) Forget(ctx context.Context, by core.Caller, path string) (Source, error) {
	release, err := r.write(ctx)
	if err != nil {
		return Source{}, err
	}
	defer release()
	path = filepath.Clean(path)
	left := r.Sources(by.Tenant)
	at := slices.IndexFunc(left, func(s Source) bool { return s.Path == path })
	if at < 0 {
		return Source{}, core.Missing("source", path)
	}
	gone := left[at]
	left = slices.Delete(left, at, at+1)
	err = r.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := r.kept.Remove(tx, record.Event{Type: "skill.source.removed"}, &gone); err != nil {
			return err
		}
		b := &refusals{r: r, tenant: by.Tenant}
		for _, p := range r.Problems(by.Tenant) {
			if !covered(left, p.File) && !slices.Contains(b.mended, p.File) {
				b.mended = append(b.mended, p.File)
			}
		}
		return b.record(tx)
	})
	if err != nil {
		return Source{}, fmt.Errorf("forget the source %s: %w", path, err)
	}
	return gone, nil
}
