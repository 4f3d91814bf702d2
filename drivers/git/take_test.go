package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/git"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// worktree is one whose states are taken.
type worktree struct {
	t    *testing.T
	r    git.Repository
	path string
}

func newWorktree(t *testing.T) *worktree {
	t.Helper()
	w := &worktree{t, git.Repository{Git: gittest.Git(t), Dir: filepath.Join(t.TempDir(), "kept.git")}, t.TempDir()}
	w.no(w.r.Make(t.Context(), "sha1"))
	w.write("a", "one")
	w.write("sub/b", "two")
	return w
}

func (w *worktree) no(err error) {
	w.t.Helper()
	expect.No(w.t, err)
}

func (w *worktree) file(name string) string { return filepath.Join(w.path, name) }

func (w *worktree) write(name, text string) {
	w.t.Helper()
	w.no(os.MkdirAll(filepath.Dir(w.file(name)), 0o755))
	w.no(os.WriteFile(w.file(name), []byte(text), 0o644))
}

func (w *worktree) try(most git.Limits) (string, error) {
	return w.r.State(w.t.Context(), git.Worktree{Path: w.path}, most, func(string) []string { return nil })
}

func (w *worktree) state() string {
	w.t.Helper()
	return expect.Of(w.try(git.Limits{Files: 1000, Bytes: 1 << 20}))(w.t)
}

// anew is the state as one finds it who has not seen the tree before.
func (w *worktree) anew() string {
	w.t.Helper()
	other := *w
	other.r.Dir = filepath.Join(w.t.TempDir(), "anew.git")
	w.no(other.r.Make(w.t.Context(), "sha1"))
	return other.state()
}

func (w *worktree) known() string { return w.r.Known(git.Worktree{Path: w.path}) }

func (w *worktree) show(commit, name string) string {
	w.t.Helper()
	return expect.Of(w.r.Do(w.t.Context(), "show", commit+":"+name))(w.t)
}

func TestAStateAfterAnyChangeIsAsOneThatIsTakenAnew(t *testing.T) {
	w := newWorktree(t)
	repo := func(name string) {
		plain(t, w.path, "init", "-q", name)
		plain(t, w.file(name), "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q", "--allow-empty", "-m", "commit")
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"a file more, with a line's end in its name", func() { w.write("new\nfile", "x") }},
		{"another text", func() { w.write("a", "another text") }},
		{"a program", func() { w.no(os.Chmod(w.file("a"), 0o755)) }},
		{"the same once more", func() { w.write("a", "another text") }},
		{"removed", func() { w.no(os.Remove(w.file("new\nfile"))) }},
		{"a file for a directory", func() { w.no(os.RemoveAll(w.file("sub"))); w.write("sub", "file") }},
		{"a directory for a file", func() { w.no(os.Remove(w.file("sub"))); w.write("sub/b", "two"); w.write("sub/c", "two") }},
		{"a link for a directory", func() { w.no(os.RemoveAll(w.file("sub"))); w.no(os.Symlink("a", w.file("sub"))) }},
		{"ignored", func() { w.write(".gitignore", "*.o\n"); w.write("x.o", "object") }},
		{"ignored no more", func() { w.write(".gitignore", "\n") }},
		{"a repository in the repository", func() { repo("nested") }},
		{"its next commit", func() { repo("nested") }},
		{"its files without it", func() { w.write("nested/f", "by hand"); w.no(os.RemoveAll(w.file("nested/.git"))) }},
		{"one more of them", func() { w.write("nested/g", "by hand") }},
		{"a repository for a file", func() { w.no(os.Remove(w.file("x.o"))); repo("x.o") }},
		{"no repository any more", func() { w.no(os.RemoveAll(w.file("nested"))); w.no(os.RemoveAll(w.file("x.o"))) }},
		{"empty", func() { w.no(os.RemoveAll(w.path)); w.no(os.Mkdir(w.path, 0o755)) }},
	} {
		step.do()
		got, want := w.state(), w.anew()
		expect.True(t, got == want, "%s: %s, taken anew %s", step.what, got, want)
	}
}

func TestATreeThatHasNotChangedIsNotWrittenAgain(t *testing.T) {
	w := newWorktree(t)
	first := w.state()
	listing := func() (all string) {
		t.Helper()
		w.no(filepath.Walk(w.r.Dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && !strings.HasSuffix(path, ".last") && path != w.r.Dir {
				all += fmt.Sprintln(path, info.Size(), info.ModTime())
			}
			return err
		}))
		return all
	}
	before := listing()
	if again := w.state(); again != first || listing() != before {
		t.Errorf("%s, then %s\n%s\n%s", first, again, before, listing())
	}
}

// What is as long as before, written in the same instant, or with the time of before,
// is seen.
func TestAChangeThatNoTimeTellsOfIsSeen(t *testing.T) {
	w := newWorktree(t)
	for n := range 5 {
		text := fmt.Sprintf("%03d", n)
		w.write("a", text)
		got := w.show(w.state(), "a")
		expect.Must(t, got == text, "%s was written, and is kept as %s", text, got)
	}
	then := time.Now().Add(-time.Hour)
	w.no(os.Chtimes(w.file("a"), then, then))
	w.state()
	// Git compares whole seconds of what nobody can set, and the file system's clock goes
	// some milliseconds behind the one that is told.
	probe := filepath.Join(t.TempDir(), "probe")
	written := func() int64 {
		w.no(os.WriteFile(probe, []byte("now"), 0o600))
		return expect.Of(os.Stat(probe))(t).ModTime().Unix()
	}
	second := written()
	expect.Await(t, "the file system's next second", func() bool { return written() > second })
	w.write("a", "xyz")
	w.no(os.Chtimes(w.file("a"), then, then))
	expect.Is(t, w.show(w.state(), "a"), "xyz", "a change under the time of before is kept as")
}

// A crash leaves an index and a state that do not belong together, and a power failure
// either without an end.
func TestAnIndexIsNotTakenForThatOfAnotherState(t *testing.T) {
	w := newWorktree(t)
	w.state()
	earlier := expect.Of(os.ReadFile(w.known() + ".last"))(w.t)
	w.write("a", "changed")
	want := w.state()
	index := expect.Of(os.ReadFile(w.known()))(w.t)
	for name, spoil := range map[string]func() error{
		"the state before":       func() error { return os.WriteFile(w.known()+".last", earlier, 0o600) },
		"no state":               func() error { return os.Remove(w.known() + ".last") },
		"no text of ours":        func() error { return os.WriteFile(w.known()+".last", []byte("{"), 0o600) },
		"no index":               func() error { return os.Remove(w.known()) },
		"an empty index":         func() error { return os.WriteFile(w.known(), nil, 0o600) },
		"half an index":          func() error { return os.WriteFile(w.known(), index[:len(index)/2], 0o600) },
		"an index full of zeros": func() error { return os.WriteFile(w.known(), bytes.Repeat([]byte{0}, len(index)), 0o600) },
		"no ref": func() error {
			_, err := w.r.Do(t.Context(), "update-ref", "-d", "refs/last/"+filepath.Base(w.known()))
			return err
		},
	} {
		w.no(spoil())
		expect.Is(t, w.state(), want, name)
	}
}

func TestATreeThatGrowsBeyondItsLimitsIsRefused(t *testing.T) {
	w := newWorktree(t)
	most := git.Limits{Files: 4, Bytes: 100}
	refused := func(what string, want bool) {
		t.Helper()
		_, err := w.try(most)
		expect.True(t, want == errors.Is(err, core.Kind(core.InvalidInput)) && (want || err == nil), "%s: %v", what, err)
	}
	refused("two files", false)
	for n := range 4 { // each as large as half of what is allowed
		w.write("a", strings.Repeat(string(rune('a'+n)), 50))
		refused("a file that is written again and again", false)
	}
	w.write("c", strings.Repeat("x", 60))
	refused("bytes", true)
	w.no(os.Remove(w.file("c")))
	refused("what was too large has gone", false)
	for n := range 3 {
		w.write(fmt.Sprint("more", n), "")
	}
	refused("files", true)
}

func TestStatesOfATreeAreTakenBesideEachOther(t *testing.T) {
	w := newWorktree(t)
	for n := range 3 {
		w.write("a", fmt.Sprint("round ", n))
		want := w.anew()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got, err := w.try(git.Limits{Files: 10, Bytes: 1000})
				expect.True(t, err == nil && got == want, "%s, want %s: %v", got, want, err)
			})
		}
		all.Wait()
	}
	left, err := filepath.Glob(w.known() + ".*")
	expect.True(t, err == nil && len(left) == 1, "left: %v %v", left, err)
}

func TestASweepForgetsTreesThatNobodyLooksAt(t *testing.T) {
	w := newWorktree(t)
	w.state()
	then := time.Now().Add(-time.Hour)
	w.no(os.Chtimes(w.known(), then, then)) // long unchanged, but looked at
	w.no(w.r.Sweep(t.Context(), then.Add(time.Minute)))
	expect.Of(os.Lstat(w.known()))(t)
	w.no(os.Chtimes(w.known()+".last", then, then))
	w.no(w.r.Sweep(t.Context(), then.Add(time.Minute)))
	left, err := filepath.Glob(w.known() + "*")
	refs, bad := w.r.Do(t.Context(), "for-each-ref")
	expect.True(t, err == nil && bad == nil && len(left) == 0 && refs == "", "left: %v %v %v %v", left, refs, err, bad)
	w.state()
	w.no(w.r.Forget(t.Context(), git.Worktree{Path: w.path}))
	expect.Is(t, expect.Of(w.r.Do(t.Context(), "for-each-ref"))(t), "", "left")
}
