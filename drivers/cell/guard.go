package cell

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
	"swarmdeck/engine/guarded"
	"swarmdeck/engine/reach"
)

// shares reports whether a tree may be one in which a person's tools come as well:
// not so one of the engine's own.
func (s *Supervisor) shares(spec Spec, t tree, own ownFiles) bool {
	return spec.Wall.Profile == Worker && t.write && !t.cache && t.path != resolved(spec.Wall.Home) && t.as != "/tmp" && !own.has(t.path) &&
		!slices.ContainsFunc(s.opt.Private, func(dir string) bool { return within(t.path, resolved(dir)) })
}

// Bounds of what is looked through in a tree, the shallow directories first.
const maxLooked, maxNames = 500, 10_000 // directories, and names of each below the top

// guard is a path that is left as it is: it begins with first, and when it is run.
type guard struct{ first, rest, when string }

// guardsAt are the names below a directory that workers leave as they are, at its top and
// of the projects within it, and when each is run.
func guardsAt(dir string, more []string) map[string]string {
	exact, wild := map[string][]guard{}, []guard{}
	for _, r := range guarded.With(more) {
		for _, p := range r.Paths {
			first, rest, _ := strings.Cut(p, "/")
			switch g := (guard{first, rest, r.When}); {
			case r.Named:
			case strings.ContainsAny(first, `*?[\`):
				wild = append(wild, g)
			default:
				exact[first] = append(exact[first], g)
			}
		}
	}
	all, most := map[string]string{}, -1
	for looked, way := 0, []string{"."}; len(way) > 0 && looked < maxLooked; looked++ {
		at := way[0]
		way = way[1:]
		for _, e := range entries(filepath.Join(dir, at), most) {
			name, its := filepath.Join(at, e.Name()), exact[e.Name()]
			for _, g := range wild {
				if is, _ := path.Match(g.first, e.Name()); is {
					its = append(slices.Clip(its), g)
				}
			}
			if e.Name() == ".git" && !e.IsDir() { // it leads to a repository
				its = []guard{{when: "you run git there"}}
			}
			for _, g := range its {
				names := []string{"."}
				if g.rest != "" {
					names, _ = fs.Glob(os.DirFS(filepath.Join(dir, name)), g.rest)
				}
				for _, n := range names {
					all[filepath.Join(name, n)] = g.when
				}
			}
			if e.IsDir() && len(its) == 0 && e.Name() != "node_modules" {
				way = append(way, name)
			}
		}
		most = maxNames
	}
	return all
}

// entries lists a directory, at most so many names.
func entries(dir string, most int) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	all, _ := f.ReadDir(most)
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// guards are those of a tree that are there, as a worker sees them, to be mounted
// read only.
func (t tree) guards(more []string) (all []string) {
	for name := range guardsAt(t.path, more) {
		if real, err := filepath.EvalSymlinks(filepath.Join(t.path, name)); err == nil && real != t.path && within(real, t.path) {
			all = append(all, t.as+strings.TrimPrefix(real, t.path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// laid looks after what no mount holds: because it was not there yet, because somebody
// outside has put another file in its place, or because there are no name spaces.
type laid struct {
	mu   sync.Mutex
	dirs []laidDir
}

type laidDir struct {
	path string
	more []string
	was  map[string]string // by name: how it looked
}

func (l *laid) add(dir string, more []string) {
	d := laidDir{path: dir, more: more, was: map[string]string{}}
	for name := range guardsAt(dir, more) {
		d.was[name] = looks(filepath.Join(dir, name))
	}
	l.dirs = append(l.dirs, d)
}

// changed are those that look different from before, by path: when each is run.
func (l *laid) changed() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]string{}
	for _, d := range l.dirs {
		for name, when := range guardsAt(d.path, d.more) {
			path := filepath.Join(d.path, name)
			if now := looks(path); now != d.was[name] {
				d.was[name], all[path] = now, when
			}
		}
	}
	return all
}

// maxSeen bounds how many files below a name are looked at.
const maxSeen = 1000

// looks is how a file looks from outside, with those below it, and where a link leads:
// what differs once it was written. Whoever writes can't set the time that is looked at.
func looks(path string) string {
	var b strings.Builder
	see := func(st unix.Stat_t) { fmt.Fprintln(&b, st.Dev, st.Ino, st.Ctim.Nano()) }
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil {
		see(st)
	}
	n := 0
	_ = filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
		if n++; err != nil || n > maxSeen || unix.Lstat(at, &st) != nil {
			return fs.SkipAll
		}
		see(st)
		return nil
	})
	return b.String()
}

// tellLaid tells of what has changed since the last time.
func (p *Process) tellLaid() {
	for path, when := range p.laid.changed() {
		p.sup.opt.Held(Held{Run: p.whose.Name, Whose: p.work, Deed: "lay", Laid: core.Clip(printable(path, unix.PathMax)), When: when})
	}
}

// laidEvery is how often it is looked at, beside at the end of a run.
const laidEvery = 2 * time.Second

// lookAfter tells of it while the run lives.
func (p *Process) lookAfter() {
	for wait := laidEvery; ; {
		select {
		case <-p.gone:
			return
		case <-time.After(wait):
			began := time.Now()
			p.tellLaid()
			wait = max(laidEvery, 20*time.Since(began)) // of a directory that the run has filled
		}
	}
}

// hidden lists what no walled run in a directory sees of what is there, and more
// that this one does not see.
func (s *Supervisor) hidden(dir string, more []string) []string {
	return reach.Hidden(dir, slices.Concat(s.opt.Hide, more)...)
}

// Hides lists what no walled run sees of what is in a directory, relative to it.
func (s *Supervisor) Hides(dir string) (all []string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	for _, path := range s.hidden(real, nil) {
		if _, err := os.Lstat(path); err != nil || path == real || !within(path, real) {
			continue
		}
		if rel, err := filepath.Rel(real, path); err == nil {
			all = append(all, rel)
		}
	}
	return all
}

// told are what words of a command name by absolute paths, and whether it is
// to be written: files, each with its directory where that holds files of one
// thing, since a script finds what lies beside it; and where the wall says so
// directories.
func (w Wall) told(words []string) map[string]bool {
	all := map[string]bool{}
	if !w.Told && !w.Work {
		return all
	}
	home, _ := os.UserHomeDir()
	for _, word := range words {
		if !filepath.IsAbs(word) || len(word) > 4096 {
			continue
		}
		word = filepath.Clean(word)
		info, err := os.Stat(word)
		switch {
		case err != nil:
		case info.IsDir() && w.Work && word != "/" && !isSystem(word, false) && !isSystem(resolved(word), false):
			all[word] = true
		case info.Mode().IsRegular() && w.Told:
			if dir := filepath.Dir(word); dir != home && !within(home, dir) && dir != filepath.Clean(os.TempDir()) {
				word = dir
			}
			if !all[word] {
				all[word] = false
			}
		}
	}
	return all
}
