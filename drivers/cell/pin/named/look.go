package named

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// glob lists what a pattern below the work directory matches.
func (f *finder) glob(pattern string) []string {
	if f.looks++; f.looks > maxLooks || !fs.ValidPath(pattern) {
		return nil
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}
	}
	found, err := fs.Glob(f.tree, pattern)
	if err != nil {
		return nil
	}
	return found[:min(len(found), MaxFiles+1)]
}

// runs looks at a word that says what runs.
func (f *finder) runs(w word) {
	if !w.known {
		f.unknown(w)
		return
	}
	f.look(w.text, true)
}

// look adds the file that a word is the path of, and reports whether there is
// one.
func (f *finder) look(text string, runs bool) (hit bool) {
	for _, p := range f.places(text) {
		if f.at(p, runs) {
			hit = true
		}
	}
	return hit
}

// places are the paths below the work directory that a word can mean.
func (f *finder) places(text string) []string {
	if text == "" || len(text) > maxWord || strings.IndexByte(text, 0) >= 0 {
		return nil
	}
	if path.IsAbs(text) {
		rel, err := filepath.Rel(f.dir, text)
		if err != nil || !filepath.IsLocal(rel) {
			return nil
		}
		return []string{filepath.ToSlash(rel)}
	}
	var out []string
	for _, base := range f.bases {
		if p := path.Join(base, text); fs.ValidPath(p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// at adds the regular file at a path, and reports whether there is one.
func (f *finder) at(p string, runs bool) bool {
	if i := slices.IndexFunc(f.found, func(n File) bool { return n.Path == p && n.Unbound == "" }); i >= 0 {
		f.found[i].Runs = f.found[i].Runs || runs
		return true
	}
	if f.looks++; f.looks > maxLooks {
		f.unbound("", "more words than are looked at")
		return false
	}
	info, err := fs.Stat(f.tree, p)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, fs.ErrInvalid):
		return false
	case err != nil:
		f.unbound(p, "a link out of the work directory, or not readable")
		return false
	case info.IsDir():
		return false
	case !info.Mode().IsRegular():
		f.unbound(p, "not a regular file")
		return false
	}
	if len(f.found) >= MaxFiles {
		f.unbound("", "more files than can be bound")
		return false
	}
	f.found = append(f.found, File{Path: p, Runs: runs})
	return true
}

// unknown notes a word that is computed when it runs, and looks at what it may
// come to.
func (f *finder) unknown(w word) {
	f.unbound(w.text, "computed when it runs")
	f.look(w.guess, true)
}

// unbound notes once what can't be bound, and why.
func (f *finder) unbound(what, why string) {
	if len(what) > 200 {
		what = strings.ToValidUTF8(what[:200], "") + "…"
	}
	n := File{Path: what, Unbound: why}
	if len(f.found) < 2*MaxFiles && !slices.Contains(f.found, n) {
		f.found = append(f.found, n)
	}
}
