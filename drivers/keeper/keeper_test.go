package keeper

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// kept is a keeper whose reports and tries are remembered.
func kept(life context.Context) (k *Keeper, health *[]fleet.Health, tries chan time.Time) {
	health, tries = new([]fleet.Health), make(chan time.Time, 16)
	n := New(life, &sync.Mutex{}, fleet.Agent{Restarts: 7}, func(h fleet.Health) { *health = append(*health, h) }, func() int { return 5 },
		func() { tries <- time.Now() })
	return &n, health, tries
}

// held does something as a driver does, with the lock.
func (k *Keeper) held(do func()) {
	k.lock.Lock()
	defer k.lock.Unlock()
	do()
}

func TestABrokenAgentIsTriedLaterEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, health, tries := kept(t.Context())
		var waits []time.Duration
		for range 12 {
			at := time.Now()
			k.held(func() { k.Fail("it broke", false) })
			waits = append(waits, (<-tries).Sub(at))
		}
		for i, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			expect.Is(t, waits[i], want, "try", i, "after")
		}
		expect.Is(t, waits[4], firstRest, "try 4 after")
		expect.Is(t, waits[len(waits)-1], lastRest, "last try after")
		expect.Is(t, (*health)[3], fleet.Health{Status: fleet.Offline, Reason: "it broke", PID: 5, Restarts: 7}, "report")
		h := (*health)[4]
		expect.True(t, h.Status == fleet.Failed && h.Reason == "it broke" && h.Trouble.Tries == 1, "report %+v", h)
		h = (*health)[len(*health)-1]
		expect.True(t, h.Trouble.Tries == 8 && h.Trouble.Since.Equal((*health)[4].Trouble.Since), "report %+v", h.Trouble)
		k.held(func() { k.Well(); k.Fail(strings.Repeat("x", 2000), false) })
		h = (*health)[len(*health)-1]
		expect.True(t, h.Status == fleet.Offline && len(h.Reason) <= maxReason, "report %s of %d bytes", h.Status, len(h.Reason))
		k.Close()
	})
}

// TestATroubleStandsUntilItIsMended, for the next engine too: nothing is started meanwhile,
// unless somebody says so or what a start depends on has changed.
func TestATroubleStandsUntilItIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, health, tries := kept(t.Context())
		k.held(func() { k.Needs("log in", true) })
		last := func() fleet.Health { return (*health)[len(*health)-1] }
		expect.True(t, last().Status == fleet.Failed && last().Reason == "log in", "%+v", last())
		trouble := last().Trouble
		k.Close()
		again := func(mended bool) *Keeper {
			n := New(t.Context(), &sync.Mutex{}, fleet.Agent{Trouble: trouble}, k.Notify, k.PID, func() { tries <- time.Now() })
			n.Greets = true
			n.Depends = func() (string, []string) { return "", map[bool][]string{true: {"."}}[mended] }
			return &n
		}
		n := again(false)
		n.held(func() { n.Check(nil) })
		expect.True(t, last().Status == fleet.Failed && last().Trouble == trouble, "%+v", last())
		time.Sleep(firstRest - time.Second)
		expect.Is(t, len(tries), 0, "tries")
		expect.No(t, n.Restart(n.lock, func() error { return nil }, func() error { return nil }))
		<-tries
		n.held(n.Up)
		expect.True(t, last().Status == fleet.Idle && last().Trouble != nil, "a start does not mend what a prompt found: %+v", last())
		n.held(n.Well)
		expect.True(t, last().Status == fleet.Idle && last().Trouble == nil, "%+v", last())
		n.Close()
		time.Sleep(time.Minute)
		began, later := time.Now(), *trouble
		later.NextAt = began.Add(time.Hour)
		trouble = &later
		n = again(true) // a file here is newer than the bubble's time
		n.held(func() { n.Check(nil) })
		expect.True(t, (<-tries).Equal(began), "it is not tried at once although something has changed")
		n.Close()
	})
}

func TestNothingIsTriedForWhomNobodyWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, health, tries := kept(t.Context())
		k.Stopped = true
		k.Fail("it broke", false)
		time.Sleep(time.Hour)
		k.Close()
		k.Close()
		k.Tell(fleet.Idle, "")
		k.Fail("again", false)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(*health) != 1 || len(tries) != 0 || !k.IsClosed() {
			t.Errorf("reports %+v, %d tries", *health, len(tries))
		}
		ctx, end := context.WithCancel(t.Context())
		k, health, _ = kept(ctx)
		end()
		k.Check(nil)
		if len(*health) != 0 {
			t.Errorf("reports %+v after the end", *health)
		}
	})
}

func TestATryWaitsForThePausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _, tries := kept(t.Context())
		k.Resume() // not paused: nothing
		k.Pause()
		paused := k.Paused()
		k.Pause()
		k.Postpone()
		time.Sleep(time.Minute)
		k.Resume()
		<-paused
		time.Sleep(time.Millisecond)
		synctest.Wait()
		expect.True(t, len(tries) == 1 && k.Paused() == nil, "%d tries", len(tries))
		k.Close()
	})
}

func TestAnEndingMakesTheOutcome(t *testing.T) {
	good := task.Outcome{Status: task.Succeeded, Text: "done"}
	for how, want := range map[Ending]struct {
		status task.Status
		code   string
		retry  bool
	}{
		ByCancel: {task.Cancelled, "cancelled", false}, ByStop: {task.Cancelled, "cancelled", false},
		ByAbort: {task.Blocked, "approval_denied", false}, ByRestart: {task.Failed, "agent_restarted", true},
	} {
		out := how.Outcome(good, how.String())
		if out.Status != want.status || out.Error.Code != want.code || out.Error.Retryable != want.retry || out.Text != "done" || out.Error.Message != how.String() {
			t.Errorf("%s: %+v %+v", how, out, out.Error)
		}
	}
	out := Running.Outcome(good, "")
	expect.True(t, out.Status == task.Succeeded && out.Error == nil, "an ending that is none: %+v", out)
}
