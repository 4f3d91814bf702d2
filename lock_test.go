package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/store"
)

func TestShortCommandsAtOnceWaitForEachOther(t *testing.T) {
	u := newUser(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if code, out, stderr := u.run("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`); code != 0 {
				t.Errorf("exit %d %s%s", code, out, stderr)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(u.ok("task", "list", "-o", "json"), "\n"); n != 6 {
		t.Errorf("%d tasks, want 6", n)
	}
	u.ok("audit", "verify")
}

func TestWaitingForTheDataFileEndsWithItsOwnerNamed(t *testing.T) {
	u := newUser(t)
	u.ok("session", "create")
	owner, err := store.Open(u.data(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	start := time.Now()
	code, _, stderr := u.run("session", "create")
	if took := time.Since(start); code != 3 || took < lockPatience {
		t.Errorf("exit %d after %s", code, took)
	}
	for _, want := range []string{"pid ", u.data()} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in %s", want, stderr)
		}
	}
	// Completion is asked for at each key: it has no ids rather than wait.
	start = time.Now()
	u.ok("__complete", "session", "show", "")
	if took := time.Since(start); took >= lockPatience {
		t.Errorf("completion took %s", took)
	}
}
