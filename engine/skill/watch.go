package skill

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
	"swarmdeck/store"
)

const (
	settleTime = 100 * time.Millisecond // of quiet, after which files are read
	settleMost = time.Second            // and read at the latest
	lookAgain  = 10 * time.Second       // after a look that could not watch everything
	maxDirs    = 2000                   // watched at once
)

// watcher reads the sources of all tenants again. It is driven by level: each
// look begins by watching and then reads everything that differs from what it
// read last, so that no change between two looks is lost.
type watcher struct {
	r      *registry
	notify *fsnotify.Watcher // nil while there is nothing to watch
	seen   map[string]glance // tenant, 0, path → what was taken in from it
	guard  *health.Guard
	fresh  bool // the last look left out a file that was being written
}

// glance is what a look remembers of a file that was taken in.
type glance struct {
	sum         [sha256.Size]byte
	ref, digest string
}

// watch reads the sources again, now and when something in them changes, until
// ctx ends. A file that is refused is audited, and what was loaded of it stays.
func (r *registry) watch(ctx context.Context) error {
	w := &watcher{r: r, seen: map[string]glance{}, guard: r.opt.Health.Guard(component)}
	defer func() {
		if w.notify != nil {
			_ = w.notify.Close() // nothing was written
		}
	}()
	for {
		whole, err := w.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the skills again: %w", err)
		}
		if !w.wait(ctx, whole) {
			return nil
		}
	}
}

// wait returns when there is something to look at; false when ctx ended.
func (w *watcher) wait(ctx context.Context, whole bool) bool {
	var again <-chan time.Time
	switch {
	case w.fresh:
		again = time.After(settleTime)
	case !whole:
		again = time.After(lookAgain)
	}
	var events <-chan fsnotify.Event
	var lost <-chan error
	if w.notify != nil {
		events, lost = w.notify.Events, w.notify.Errors
	}
	var quiet, most <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.r.stir:
			return true
		case <-again:
			return true
		case <-lost: // events were dropped: look at everything
			return true
		case e := <-events:
			if !w.concerns(e) {
				continue
			}
			quiet = time.After(settleTime)
			if most == nil {
				most = time.After(settleMost)
			}
		case <-quiet:
			return true
		case <-most:
			return true
		}
	}
}

// concerns tells whether an event may be about a skill file.
func (w *watcher) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	for _, s := range w.sources() {
		if !s.covers(e.Name) {
			continue
		}
		if e.Name == s.Path || skillFile(e.Name) {
			return true
		}
		info, err := os.Stat(e.Name)
		if err != nil || info.IsDir() {
			return true // a directory that came, or something that went
		}
	}
	return false
}

// sources are those of all tenants.
func (w *watcher) sources() []Source {
	var all []Source
	for _, tenant := range slices.Sorted(maps.Keys(w.r.sources.All())) {
		all = append(all, w.r.Sources(tenant)...)
	}
	return all
}

// look watches the sources and reads them. It tells whether it could watch
// and read them all.
func (w *watcher) look(ctx context.Context) (whole bool, err error) {
	w.fresh = false
	whole = w.watchAll(w.sources())
	for _, tenant := range slices.Sorted(maps.Keys(w.r.sources.All())) {
		var all bool
		rest, err := w.guard.Try(ctx, tenant, func() (err error) {
			all, err = w.reread(ctx, tenant, w.r.Sources(tenant))
			return err
		})
		if err != nil {
			return false, err
		}
		whole = whole && all && rest == 0
	}
	return whole, nil
}

// watchAll makes the watched directories those of the sources.
func (w *watcher) watchAll(sources []Source) (whole bool) {
	if len(sources) == 0 && w.notify == nil {
		return true
	}
	if w.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			return false // the system has no more to give: look again now and then
		}
		w.notify = notify
	}
	want := map[string]bool{}
	whole = true
	for _, s := range sources {
		info, err := os.Stat(s.Path)
		switch {
		case err != nil:
			whole = false
		case !info.IsDir():
			want[filepath.Dir(s.Path)] = true
		default:
			whole = directories(s.Path, want) && whole
		}
	}
	for _, dir := range w.notify.WatchList() {
		if !want[dir] {
			_ = w.notify.Remove(dir) // it may be gone, with its watch
		}
		delete(want, dir)
	}
	for dir := range want {
		whole = w.notify.Add(dir) == nil && whole
	}
	return whole
}

// directories adds a directory and those below it, hidden ones left out.
func directories(root string, to map[string]bool) (whole bool) {
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case name != root && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case len(to) >= maxDirs:
			return errors.New("too many directories to watch")
		}
		to[name] = true
		return nil
	})
	return err == nil
}

// reread takes in what differs in a tenant's sources from what was read last.
func (w *watcher) reread(ctx context.Context, tenant string, sources []Source) (whole bool, err error) {
	whole = true
	var files []string
	for _, s := range sources {
		found, err := filesOf(s.Path)
		whole = whole && err == nil // gone for now: what was loaded stays
		files = append(files, found...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	x := w.r.index(tenant)
	key := func(path string) string { return tenant + "\x00" + path }
	sums := make([][sha256.Size]byte, len(files))
	defs := readFiles(w.r.opt.Own, files, func(path string, data []byte) bool {
		i, _ := slices.BinarySearch(files, path)
		sums[i] = sha256.Sum256(data)
		was := w.seen[key(path)]
		s := x.find(was.ref)
		return was.sum == sums[i] && s != nil && s.Digest == was.digest
	})
	defs = slices.DeleteFunc(defs, func(d Definition) bool {
		half := len(d.problems) > 0 && unsettled(d.file)
		w.fresh = w.fresh || half
		return half
	})
	gone := w.r.refusedGone(tenant)
	if len(defs)+len(gone) == 0 || ctx.Err() != nil {
		return whole, nil
	}
	if err := w.r.takeIn(ctx, tenant, defs, gone); err != nil {
		return false, err
	}
	x = w.r.index(tenant)
	for _, d := range defs {
		i, _ := slices.BinarySearch(files, d.file)
		delete(w.seen, key(d.file))
		if s := x.find(d.skill.Ref()); s != nil && s.Source == d.file && s.Digest == d.skill.Digest {
			w.seen[key(d.file)] = glance{sums[i], s.Ref(), s.Digest}
		}
	}
	return whole, nil
}

// unsettled tells whether what is wrong with a file may be otherwise in a
// moment: it may be half written, or was removed after it had been listed.
func unsettled(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return time.Since(info.ModTime()).Abs() < settleTime
}

// takeIn loads what was read again, on the engine's own account. What someone
// unloaded comes back only when it has changed since.
func (r *registry) takeIn(ctx context.Context, tenant string, defs []Definition, gone []string) error {
	release, err := r.write(ctx)
	if err != nil {
		return err
	}
	defer release()
	unloaded := map[string]string{} // digests, by name@version
	err = r.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		return dropped.Each(tx, nil, func(key record.Parts, digest string) (bool, error) {
			unloaded[refOf(key)] = digest
			return true, nil
		})
	})
	if errors.Is(err, store.ErrNoTenant) {
		return nil
	}
	if err != nil {
		return err
	}
	sources := r.Sources(tenant) // one may have been forgotten since the files were read
	var read []origin
	var from []int
	for i, d := range defs {
		if covered(sources, d.file) {
			read, from = append(read, origin{Definition: d}), append(from, i)
		}
	}
	p := r.plan(tenant, read, unloaded)
	p.gone = gone
	for i, at := range from {
		defs[at].skill.Digest = read[i].skill.Digest
	}
	return r.carryOut(ctx, core.Self(tenant, "skills"), p)
}
