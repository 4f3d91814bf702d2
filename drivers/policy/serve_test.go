package policy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// running are the processes that run a program of r.
func running(r *Runner) int { return len(naming([]string{r.dir})) }

func TestAReleasedProgramEndsThoughItIsAskedAllTheTime(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	p := serving(echoes)
	before := holdings(t)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var asked atomic.Int64
	for range 20 {
		all.Go(func() {
			for ctx.Err() == nil {
				got := r.Decide(t.Context(), p, []byte(`{"of":1}`))
				expect.True(t, !got.Fault || got.ReasonCode == judge.ReasonTimeout, "got %+v", got)
				asked.Add(1)
			}
		})
	}
	expect.Await(t, "answers", func() bool { return asked.Load() > 100 })
	for range 10 {
		r.Release(p)
		until := asked.Load() + 20
		expect.Await(t, "more answers", func() bool { return asked.Load() > until })
	}
	stop()
	all.Wait()
	r.Release(p)
	expect.Await(t, "end of all processes", func() bool { return running(r) == 0 })
	expect.No(t, r.Close())
	nothingLeft(t, before, r.dir)
}

func TestWhatNobodyAsksEnds(t *testing.T) {
	need(t, python)
	r := runner(t, Options{Idle: 200 * time.Millisecond, Deadline: 2 * time.Minute})
	if ok, why := r.Jailed(t.Context()); !ok {
		t.Skip("this system can't jail: " + why)
	}
	before := holdings(t)
	for range 2 {
		got := r.Decide(t.Context(), serving(echoes), []byte(`{"of":1}`))
		expect.Must(t, got.ReasonCode == "n1", "got %+v", got)
		got = r.Decide(t.Context(), program(sh, "echo '"+yes+"'\n"), nil)
		expect.Must(t, got.Decision == "approve", "got %+v", got)
		nothingLeft(t, before, r.dir)
	}
}

func TestProgramsOfTwoNamesAreTwoProcesses(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	one, two := serving(echoes), serving(echoes)
	two.Name = "t_other/" + two.Name
	for i, p := range []*judge.Program{one, one, two} {
		want := []string{"n1", "n2", "n1"}[i]
		got := r.Decide(t.Context(), p, []byte(`{}`))
		expect.True(t, got.ReasonCode == want, "%d: got %+v, want %s", i, got, want)
	}
}

func TestAProgramThatEndsBetweenQuestionsIsStartedForTheNext(t *testing.T) {
	r := jailedRunner(t)
	p := program(sh, "read line\necho '"+yes+"'\n")
	p.Serve = true
	for i := range 5 {
		got := r.Decide(t.Context(), p, []byte("{}"))
		expect.Must(t, got.Decision == "approve", "question %d: got %+v", i, got)
		expect.Await(t, "end of it", func() bool { return running(r) == 0 })
	}
}

func TestAProgramThatFailsAgainAndAgainRests(t *testing.T) {
	r := jailedRunner(t)
	p := program(sh, "exit 3\n")
	p.Serve = true
	expect.Await(t, "rest", func() bool {
		got := r.Decide(t.Context(), p, []byte("{}"))
		expect.Must(t, got.ReasonCode == judge.ReasonError, "got %+v", got)
		return strings.Contains(got.Rationale, "times in a row, and is started again in")
	})
	r.Release(p) // forgets it
	got := r.Decide(t.Context(), p, []byte("{}"))
	expect.True(t, !strings.Contains(got.Rationale, "in a row"), "got %+v", got)
}

func TestAfterCloseAPersonIsAsked(t *testing.T) {
	for _, stays := range []bool{false, true} {
		r := jailedRunner(t)
		before := holdings(t)
		p := program(sh, "while read line; do echo '"+yes+"'; done\n")
		p.Serve = stays
		var asked atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { asked.Add(1); r.Decide(t.Context(), p, []byte("{}")) })
		}
		expect.Await(t, "all have asked", func() bool { return asked.Load() == 20 })
		expect.No(t, r.Close())
		all.Wait()
		got := r.Decide(t.Context(), p, []byte("{}"))
		expect.True(t, got.ReasonCode == judge.ReasonError, "got %+v", got)
		nothingLeft(t, before, fmt.Sprintf("%s/", r.dir))
	}
}
