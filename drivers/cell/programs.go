package cell

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what links in the directories of a PATH lead to.
const (
	maxEntries = 512 // of one directory that are looked at
	maxLed     = 64  // places
	maxChain   = 16  // links from one to the next
	maxBins    = 2   // directories of programs that lead on: a tool's, its interpreter's
)

// programs are the places from which a run's programs come: its own, with what
// belongs to it, the directories of its PATH, and what programs there are links
// to. The system's need no mention. What is hidden is not among them, whoever
// names it in a PATH, but for the program itself; the engine's own never is.
func (s *Supervisor) programs(path string, spec Spec) []string {
	home, _ := os.UserHomeDir()
	own, hidden := s.own(), s.hidden(spec.Dir, spec.Wall.Hide)
	f := finder{home: home}
	for _, dir := range filepath.SplitList(pathOf(spec.Env)) {
		if !filepath.IsAbs(dir) || spec.writes(dir) { // the run may write there, and has it
			continue
		}
		f.add(packageOf(dir, home))
		f.modules(dir)
		if real := resolved(dir); !isSystem(real, false) && !spec.writes(real) {
			f.links(real, maxBins)
		}
	}
	all := slices.DeleteFunc(f.all, func(p string) bool {
		return slices.ContainsFunc(hidden, func(h string) bool { return within(p, h) || within(resolved(p), h) })
	})
	f = finder{home: home}
	if !spec.held || !spec.writes(path) {
		f.follow(path, maxBins)
	}
	return append(all, slices.DeleteFunc(f.all, func(p string) bool { return own.has(p) })...)
}

// writes reports whether a run may write a directory: what lies there is its own
// word, and leads nowhere.
func (spec Spec) writes(dir string) bool {
	return slices.ContainsFunc(append([]string{spec.Dir, spec.Wall.Home}, spec.Wall.Write...), func(w string) bool {
		return w != "" && (within(dir, w) || within(dir, resolved(w)))
	})
}

// finder collects the places of programs.
type finder struct {
	home string
	led  int // places that links have led to
	all  []string
}

func (f *finder) add(path string) {
	if !isSystem(path, false) && !slices.Contains(f.all, path) {
		f.all = append(f.all, path)
	}
}

// modules adds where programs of Node.js have the rest of themselves.
func (f *finder) modules(path string) {
	if i := strings.Index(path, "/node_modules/"); i >= 0 {
		f.add(path[:i] + "/node_modules")
	}
}

// follow adds a program, what leads to it, the packages of all these, and what
// lies beside it: a script's interpreter often does.
func (f *finder) follow(path string, bins int) {
	for range maxChain {
		f.add(path)
		f.modules(path)
		if dir := packageOf(filepath.Dir(path), f.home); dir != filepath.Dir(path) {
			f.add(dir)
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if dir := filepath.Dir(path); bins > 0 && filepath.Base(dir) == "bin" && !isSystem(resolved(dir), false) {
		f.links(dir, bins-1)
	}
}

// links follows the links to programs in a directory.
func (f *finder) links(dir string, bins int) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	entries, _ := d.ReadDir(maxEntries)
	d.Close()
	for _, e := range entries {
		link := filepath.Join(dir, e.Name())
		if e.Type() != fs.ModeSymlink || f.led == maxLed {
			continue
		}
		real, err := filepath.EvalSymlinks(link)
		if err != nil || filepath.Dir(real) == dir || isSystem(real, false) || runnable(real) != nil {
			continue
		}
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		if !slices.Contains(f.all, target) {
			f.led++
			f.follow(target, bins)
		}
	}
}

// packageOf is the directory of a package whose programs are in its bin: the
// directory itself where that holds the programs of many.
func packageOf(dir, home string) string {
	parent := filepath.Dir(dir)
	if base := filepath.Base(dir); base != "bin" && base != "shims" || parent == "/" || parent == home || within(home, parent) ||
		parent == filepath.Join(home, ".local") || isSystem(parent, false) {
		return dir
	}
	return parent
}
