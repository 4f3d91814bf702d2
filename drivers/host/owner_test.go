package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	driver "swarmdeck/drivers/host"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/host"
	"swarmdeck/engine/secret"
	"swarmdeck/expect"
)

// owner is an engine that has the tenant with an epoch, by a lease perhaps.
func (b *box) owner(epoch uint64, leased bool) *driver.Pool {
	return driver.New(driver.Options{
		Cells: b.cells, Agents: func(string, string) []string { return b.agents }, Grace: time.Second, Leased: leased,
		Epoch: func(context.Context, string) (uint64, error) { return epoch, nil },
	})
}

// own has another engine in the place of the present one, which it ends.
func (b *box) own(p *driver.Pool) {
	b.leave()
	b.pool = p
	b.enter()
}

// beats is how much a process that writes into the file beat of its directory has.
func (b *box) beats() int64 {
	found, _ := filepath.Glob(filepath.Join(b.home, ".cache", "swarmdeck*", "keeper-*", "agents", "A", "work", "beat"))
	if len(found) != 1 {
		return 0
	}
	info, err := os.Stat(found[0])
	if err != nil {
		return 0
	}
	return info.Size()
}

const beating = "while :; do echo x >> beat; sleep 0.02; done"

func TestAnOwnerWithAHigherEpochTakesOverAndALowerOneIsRefused(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	old, next := b.owner(5, false), b.owner(6, false)
	b.own(old)
	p := b.start("sh", "-c", beating)
	defer p.CloseIO()
	b.await("it works", func() bool { return b.beats() > 0 })

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = next.Keep(ctx, b.host)
	}()
	defer func() { stop(); <-ended }()
	b.await("the newer owner has it", func() bool { return next.Link("t_home", "box").State == host.Up })
	expect.Still(t, b.beats, "what the former owner began goes on beside the newer one")
	expect.Has(t, p.Exit().Describe(), "newer owner")
	refused := func(who *driver.Pool) {
		t.Helper()
		b.await("the former owner is refused", func() bool {
			l := who.Link("t_home", "box")
			return l.State == host.Refused && strings.Contains(l.Reason, "its epoch is 6, this engine's 5")
		})
	}
	refused(old)
	_, err := b.try("true")
	expect.Says(t, err, "newer owner", "the former owner begins something")
	q := expect.Of(next.Start("t_home", "box", spec("sh", "-c", "sleep 1000"), keeper.Hosted{}))(t)
	defer q.CloseIO()
	former, cleared := b.owner(5, false), make(chan error, 1)
	clearing, over := context.WithCancel(context.Background())
	defer over()
	go func() { cleared <- former.Clear(clearing, b.host) }()
	refused(former) // it goes on trying until it is told to stop
	over()
	err = <-cleared
	expect.Says(t, err, "newer owner", "a former owner clears it")
	if q.Ended() {
		t.Error("a former owner has ended what is the newer one's:", q.Exit().Describe())
	}

	// The keeper's disk knows too.
	stop()
	<-ended
	b.leave()
	b.await("the keeper is gone", func() bool { // a link in the making may bring another
		for _, pid := range b.keepers("") {
			_ = kill(pid)
		}
		return expect.Rests(t, "keepers", func() int { return len(b.keepers("")) }) == 0
	})
	again, stop := context.WithCancel(context.Background())
	left := make(chan struct{})
	late := b.owner(5, false)
	go func() {
		defer close(left)
		_ = late.Keep(again, b.host)
	}()
	refused(late)
	stop()
	<-left
	b.pool = b.owner(6, false) // as when its engine works on: it may come again
	b.enter()
}

func TestWhatRunsThereStandsStillWhileItsOwnersDataAreNotHeld(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	pool := b.owner(1, true)
	hold := func(d time.Duration) { pool.Hold(time.Now().Add(d)) }
	hold(time.Minute)
	b.own(pool)
	p := b.start("sh", "-c", beating)
	defer func() { _ = end(p) }()
	works := func(what string) {
		t.Helper()
		was := b.beats()
		b.await(what, func() bool { return b.beats() > was })
	}
	works("it works")
	b.leave()
	pool = b.owner(2, true) // which ends it, and begins another while it may not run yet
	hold(-time.Second)
	b.own(pool)
	hold(2 * time.Second)
	q := b.start("sh", "-c", beating)
	defer func() { _ = end(q) }()
	works("it works")
	expect.Rests(t, "it stands still", b.beats)
	if state := b.state(); state != host.Up || q.Ended() {
		t.Error(state, q.Ended())
	}
	hold(2 * time.Second)
	works("it goes on")

	// Without a link, too, and from then on until it is back.
	free := b.block()
	hold(time.Minute)
	expect.Rests(t, "it stands still without a link", b.beats)
	free()
	works("it goes on with the link")
	if q.Ended() {
		t.Error(q.Exit().Describe())
	}
}

func TestTheNextEngineIsToldHowTheRunsOfTheFormerEnded(t *testing.T) {
	b := newBox(t, func(h *host.Host) { h.LeaseS = 60 })
	begin := func(script string) keeper.Process {
		t.Helper()
		s := spec("sh", "-c", script)
		s.Keep = &cell.Keep{Stdout: true, Mask: secret.NewMask(map[string]string{"KEY": "correct-horse"})}
		return expect.Of(b.pool.Start("t_home", "box", s, keeper.Hosted{}))(t)
	}
	done, goes := begin("read x; touch began; until test -e go; do sleep 0.01; done; echo unread correct-horse; echo bad >&2; touch said; exit 7"), begin("read x; touch going; sleep 1000")
	defer done.CloseIO()
	defer goes.CloseIO()
	for _, p := range []keeper.Process{done, goes} {
		p.Serves("task-1", true)
		p.Serves("task-2", true)
		p.Serves("task-1", false)
		in, _, _ := p.Streams()
		fmt.Fprintln(in, "x")
	}
	b.start("sleep", "1000") // of which nothing is kept
	dirs, _ := filepath.Glob(filepath.Join(b.home, ".cache/swarmdeck/keeper-*/agents/A/work"))
	expect.Must(t, len(dirs) == 1, "%v", dirs)
	there := func(name string) bool { _, err := os.Stat(filepath.Join(dirs[0], name)); return err == nil }
	b.await("they have what they were given", func() bool { return there("began") && there("going") })
	b.leave()
	b.await("the link is over", func() bool { return len(b.keepers("link")) == 0 })
	expect.No(t, os.WriteFile(filepath.Join(dirs[0], "go"), nil, 0o600))
	b.await("one has ended", func() bool { return there("said") })

	var kept []cell.Kept
	fail := true
	b.pool = driver.New(driver.Options{
		Cells: b.cells, Agents: func(string, string) []string { return b.agents }, Grace: time.Second,
		Kept: func(_ context.Context, tenant, name string, k cell.Kept) error {
			if fail {
				return errors.New("not now")
			}
			state := b.pool.Link("t_home", "box").State
			expect.True(t, state != host.Up && tenant == "t_home" && name == "box", "%v %v %v", state, tenant, name)
			kept = append(kept, k)
			return nil
		},
	})
	b.enter()
	b.leave()
	fail = false
	stray := filepath.Join(dirs[0], "../../B")
	expect.No(t, os.Mkdir(stray, 0o700))
	b.enter() // what it failed for is told again
	b.await("the host has heard what was taken: it tidies up next", func() bool { _, err := os.Stat(stray); return err != nil })
	expect.Must(t, len(kept) == 2, "%+v", kept)
	slices.SortFunc(kept, func(a, b cell.Kept) int { return strings.Compare(a.How, b.How) })
	for i, k := range kept {
		if k.Whose.Agent != "A" || k.Whose.Tenant != "t_home" || !slices.Equal(k.Tasks, []string{"task-2"}) || time.Since(k.Lost) < time.Since(k.Ended) && i == 1 {
			t.Errorf("%+v", k)
		}
	}
	if k := kept[0]; k.How != cell.EndedItself || k.Code != 7 || string(k.Stdout) != "unread [secret KEY]\n" || string(k.Stderr) != "bad\n" || k.Cut {
		t.Errorf("%+v", k)
	}
	k := kept[1]
	expect.True(t, k.How == cell.EndedThere && len(k.Stdout)+len(k.Stderr) == 0, "%+v", k)
	kept = nil
	b.leave()
	b.enter()
	expect.True(t, len(kept) == 0, "told twice: %+v", kept)
}
