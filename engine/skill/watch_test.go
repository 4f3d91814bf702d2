package skill

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// watching runs the watch until the test ends or stop is called.
func (s *shelf) watching() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := expect.Later(func() error { return s.watch(ctx) })
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			expect.Is(s.t, err, nil, "watch")
		case <-time.After(2 * time.Minute):
			s.t.Error("the watch does not end")
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// until waits for something that a change of a file leads to.
func (s *shelf) until(what string, met func() bool) {
	s.t.Helper()
	expect.Await(s.t, what, met)
}

func (s *shelf) has(ref string) func() bool {
	return func() bool { _, err := s.Skill(home, ref); return err == nil }
}

func TestAChangedFileIsLoadedByItself(t *testing.T) {
	s := newShelf(t)
	s.file("navigate.yaml", navigate)
	s.load()
	s.watching()
	before, _ := s.Skill(home, "navigate")

	s.file("navigate.yaml", strings.Replace(navigate, "timeout: 60", "timeout: 61", 1))
	s.until("changed", func() bool { now, _ := s.Skill(home, "navigate"); return now.Timeout == 61 })
	expect.Is(t, before.Timeout, 60, "what was held has changed")

	s.file("navigate.yaml", strings.Replace(navigate, "timeout: 60", "timeout: 9999", 1))
	s.until("refused", func() bool { return len(s.Problems(home)) == 1 })
	p := s.Problems(home)[0]
	expect.True(t, p.Line == 15 && p.Field == "timeout" && p.Value == "9999" && p.Allowed == "a whole number, 1-3600", "%+v", p)
	now, _ := s.Skill(home, "navigate")
	expect.True(t, now.Timeout == 61, "%+v", now)

	s.file("navigate.yaml", strings.Replace(navigate, "version: 1.0.0", "version: 1.1.0", 1))
	s.until("loaded", s.has("navigate@1.1.0"))
	s.until("mended", func() bool { return len(s.Problems(home)) == 0 })
	expect.True(t, s.has("navigate@1.0.0")(), "the version before is gone")

	s.file("sub/deep/new.yaml", skillText("fresh", "1.0.0", "navigate"))
	s.until("found below", s.has("fresh"))
	expect.No(t, os.Rename(filepath.Join(s.dir, "sub"), filepath.Join(t.TempDir(), "gone")))
	s.file("sub/deep/newer.yaml", skillText("fresher", "1.0.0"))
	s.until("found again", s.has("fresher"))
	expect.True(t, s.has("fresh")(), "a skill whose file went is gone")
	want := []string{"skill.source.added", "skill.loaded", "skill.changed", "skill.refused", "skill.mended", "skill.loaded", "skill.loaded", "skill.loaded"}
	expect.Same(t, s.events(), want)
}

func TestEditorsReplaceFiles(t *testing.T) {
	s := newShelf(t)
	path := s.file("one.yaml", skillText("one", "1.0.0"))
	s.load(path) // the file alone, not its directory
	s.watching()
	s.file("other.yaml", skillText("other", "1.0.0"))
	for i, v := range []string{"1.0.1", "1.0.2", "1.0.3"} {
		draft := s.file("one.yaml.tmp", skillText("one", v))
		expect.No(t, os.Rename(draft, path))
		s.until("replaced", s.has("one@"+v))
		expect.Is(t, len(s.Catalog(home)), i+2)
	}
}

func TestSourcesAreReadAgainAtTheStart(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("one", "1.0.0"))
	s.file("b.yaml", skillText("two", "1.0.0", "one"))
	s.load()
	s.again()
	s.file("a.yaml", skillText("one", "1.2.0"))
	s.file("b.yaml", skillText("two", "1.x.0"))
	s.watching()
	s.until("read again", s.has("one@1.2.0"))
	s.until("refused", func() bool { return len(s.Problems(home)) == 1 })
	expect.True(t, s.has("two@1.0.0")(), "a bad change took away what was loaded")
	want := []string{"skill.source.added", "skill.loaded", "skill.loaded", "skill.loaded", "skill.refused"}
	expect.Same(t, s.events(), want)
}

func TestARefusalIsAuditedOnceUntilItIsAnother(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("one", "1.0.0"))
	s.file("b.yaml", skillText("two", "1.x.0"))
	s.load()
	s.watching()
	for i, v := range []string{"1.0.1", "1.0.2"} {
		s.file("a.yaml", skillText("one", v)) // each time b is read too
		s.until("loaded", s.has("one@"+v))
		n := strings.Count(strings.Join(s.events(), " "), "skill.refused")
		expect.True(t, n == 1, "%d refusals after %d changes", n, i+1)
	}
	s.file("b.yaml", skillText("two", "1.y.0"))
	s.until("refused anew", func() bool { return strings.Count(strings.Join(s.events(), " "), "skill.refused") == 2 })
}

func TestWhatWasRefusedIsKnownAfterARestart(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("one", "1.0.0"))
	s.file("b.yaml", skillText("two", "1.x.0"))
	s.file("c.yaml", skillText("three", "1.x.0"))
	s.load()
	s.load(s.file("d.yaml", "nonsense")) // asked for, refused: below the directory, so it is kept
	elsewhere := filepath.Join(t.TempDir(), "e.yaml")
	expect.No(t, os.WriteFile(elsewhere, []byte("nonsense"), 0o600))
	s.load(elsewhere)
	before := s.Problems(home)
	expect.Must(t, len(before) == 3, "%+v", before)
	s.again()
	after := s.Problems(home)
	expect.True(t, reflect.DeepEqual(after, before), "\n got %+v\nwant %+v", after, before)
	s.watching()
	s.file("b.yaml", skillText("two", "1.0.0"))
	expect.No(t, os.Remove(filepath.Join(s.dir, "c.yaml")))
	s.until("mended", func() bool { return len(s.Problems(home)) == 1 && s.has("two")() })
	if _, err := s.Forget(t.Context(), alice, s.dir); err != nil || len(s.Problems(home)) != 0 {
		t.Errorf("%v %+v", err, s.Problems(home))
	}
	all := strings.Join(s.events(), " ")
	expect.True(t, strings.Count(all, "skill.refused") == 4 && strings.Count(all, "skill.mended") == 3, "%s", all)
	s.again()
	after = s.Problems(home)
	expect.True(t, len(after) == 0, "%+v", after)
}

func TestWhatWasUnloadedStaysAway(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("one", "1.0.0"))
	s.file("b.yaml", skillText("two", "1.0.0"))
	s.load()
	expect.Of(s.Unload(t.Context(), alice, "one"))(t)
	s.again()
	stop := s.watching()
	s.file("b.yaml", skillText("two", "1.0.1"))
	s.until("loaded", s.has("two@1.0.1"))
	expect.True(t, !s.has("one")(), "it came back by itself")
	s.file("a.yaml", skillText("one", "1.0.0")+"tags: [new]\n")
	s.until("loaded again", s.has("one"))
	stop()
	expect.Of(s.Unload(t.Context(), alice, "one@1.0.0"))(t)
	got := s.load().actions()
	expect.True(t, reflect.DeepEqual(got, []string{"created one@1.0.0", "unchanged two@1.0.1"}), "asked for: %q", got)
}

func TestAForgottenSourceIsReadNoMore(t *testing.T) {
	s := newShelf(t)
	path := s.file("a/one.yaml", skillText("one", "1.0.0"))
	other := s.file("b/two.yaml", skillText("two", "1.0.0"))
	s.load(path, filepath.Dir(other))
	s.watching()
	expect.Of(s.Forget(t.Context(), alice, path))(t)
	s.file("a/one.yaml", skillText("one", "1.0.1"))
	s.file("b/two.yaml", skillText("two", "1.0.1"))
	s.until("read", s.has("two@1.0.1"))
	expect.True(t, !s.has("one@1.0.1")() && s.has("one")(), "a forgotten file was read, or its skill is gone")
	expect.Fails(t, expect.Fault(s.Forget(t.Context(), alice, path)), "forgotten twice")
	deltas, err := s.ledger.Reconcile(t.Context(), home)
	expect.True(t, err == nil && len(deltas) == 0, "%+v %v", deltas, err)
}

func TestTheWatchLeavesNothingBehind(t *testing.T) {
	s := newShelf(t)
	s.file("a.yaml", skillText("one", "1.0.0"))
	before := runtime.NumGoroutine()
	for range 3 {
		stop := s.watching()
		s.load()
		s.file("a.yaml", skillText("one", "1.0.0"))
		stop()
	}
	s.until("quiet", func() bool { return runtime.NumGoroutine() <= before })
}
