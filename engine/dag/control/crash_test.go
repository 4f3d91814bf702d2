package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/storetest"
)

// TestKilledAtAnyInstantNoEffectIsLostOrDoubled carries intents out in a process
// that is killed again and again. What it did is counted outside, in files.
// Afterwards every intent that was acknowledged is there and comes to its end;
// what is done was done once, where it can be seen, and at most once a try
// where it can't; what failed has left nothing; no two worked on one step.
func TestKilledAtAnyInstantNoEffectIsLostOrDoubled(t *testing.T) {
	drain := rand.New(rand.NewPCG(1, 2))
	storetest.Crash(t, storetest.CrashOptions{
		Budget: 10 * time.Second,
		Open:   enginetest.Sealed,
		Load: func(ctx context.Context, st store.Store, ack func(string)) error {
			c, _, err := outsideRig(st, filepath.Join(os.Getenv("SWARMDECK_CRASH_DIR"), "world"))
			if err != nil {
				return err
			}
			if err := st.CreateTenant(ctx, acme); err != nil && !errors.Is(err, store.ErrTenantExists) {
				return err
			}
			return wish(ctx, c, ack)
		},
		Verify: func(t testing.TB, dir string, st store.Store, acked []string) {
			c, ledger, err := outsideRig(st, filepath.Join(dir, "world"))
			expect.No(t, err)
			if len(acked) == 0 {
				return // perhaps killed before there was a tenant
			}
			for _, line := range acked {
				word := strings.Fields(line)
				i, err := c.Get(context.Background(), alice, word[1])
				expect.True(t, err == nil && (word[0] != "ended" || string(i.Status) == word[2]), "%s: is %s, %v", line, i.Status, err)
			}
			deltas, err := ledger.Reconcile(context.Background(), acme)
			expect.True(t, err == nil && len(deltas) == 0, "reconcile: %v %v", deltas, err)
			if drain.IntN(4) == 0 {
				finish(t, c)
				settled(t, c, filepath.Join(dir, "world"))
			}
		},
	})
}

func outsideRig(st store.Store, dir string) (*control.Controller, *audit.Ledger, error) {
	ledger := audit.New(st, audit.Options{})
	c := control.New(control.Options{
		Ledger: ledger, DAG: dag.New(dag.Options{Ledger: ledger}), Tenants: st.Tenants,
		Backoff: func(int) time.Duration { return time.Millisecond },
	})
	seen, blind := outside{dir: dir}, outside{dir: dir, blind: true}
	return c, ledger, errors.Join(
		c.Register("make", control.Kind{Effect: seen, Attempts: 50}), c.Register("blind", control.Kind{Effect: blind, Attempts: 50}),
		c.Register("fail", control.Kind{Effect: outside{dir: dir, fails: true, blind: true}, Attempts: 2}), os.MkdirAll(dir, 0o700))
}

// wish wants things for ever, and acknowledges what it was told.
func wish(ctx context.Context, c *control.Controller, ack func(string)) error {
	errs := make(chan error, 5)
	go func() { errs <- c.Run(ctx) }()
	for p := range 4 {
		go func() {
			for n := p; ctx.Err() == nil; n++ {
				spec := control.Spec{AgentID: "ada", Steps: []control.Step{step("make", `{}`), step("blind", `{}`)}}
				if n%3 == 1 {
					spec.Subject = "resource:one"
				}
				if n%4 == 2 {
					spec.Steps = append(spec.Steps, step("fail", `{}`), step("make", `{}`))
				}
				i, err := c.Intend(ctx, alice, spec)
				if err != nil {
					errs <- err
					return
				}
				ack("wants " + i.IntentID)
				if i, err = c.Await(ctx, acme, i.IntentID); err != nil {
					errs <- err
					return
				}
				ack("ended " + i.IntentID + " " + string(i.Status))
			}
		}()
	}
	return <-errs
}

// finish carries out what is open.
func finish(t testing.TB, c *control.Controller) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	defer running.Wait()
	defer stop()
	page, err := c.List(ctx, acme, core.Filter{Size: 100}, true)
	expect.No(t, err)
	for _, i := range page.Items {
		i, err = c.Await(ctx, acme, i.IntentID)
		expect.True(t, err == nil && i.Status.Over(), "%+v %v", i, err)
	}
}

// settled holds the world against the intents, all of which are over.
func settled(t testing.TB, c *control.Controller, dir string) {
	for n := 1; ; n++ {
		page := expect.Of(c.List(context.Background(), acme, core.Filter{Page: n, Size: 100}, false))(t)
		for _, i := range page.Items {
			want := control.Done
			if len(i.Steps) == 4 {
				want = control.Failed
			}
			expect.Is(t, i.Status, want, i.IntentID, "is", i.Why)
			for k, s := range i.Steps {
				inPlace(t, dir, &i, k+1, s)
			}
		}
		if !page.Info.Next {
			return
		}
	}
}

func inPlace(t testing.TB, dir string, i *control.Intent, n int, s control.StepState) {
	o := outside{dir: dir}
	name := fmt.Sprintf("%s-%d", i.IntentID, n)
	ones, twos := o.count(name, "one"), o.count(name, "two")
	expect.True(t, o.count(name, "overlap") <= 0, "%s: two worked on it at once", name)
	expect.Is(t, expect.Fault(os.Stat(filepath.Join(dir, name))) == nil, i.Status == control.Done, name, "of a", i.Status, "intent: there")
	switch {
	case s.Action == "make" && s.Status == control.StepDone && (ones != 1 || twos != 1),
		s.Action == "make" && (ones > 1 || twos > 1),
		s.Action == "blind" && s.Status == control.StepDone && (twos < 1 || ones > s.Tries),
		s.Status == control.StepCanceled && ones > 0:
		t.Errorf("%s (%s, %s after %d tries) was done %d+%d times", name, s.Action, s.Status, s.Tries, ones, twos)
	}
}

// outside is an effect on files: one of a step's key that holds both of its
// halves, and a journal of what was done to it.
type outside struct {
	dir          string
	blind, fails bool
}

func (o outside) name(j control.Job) string { return strings.ReplaceAll(j.Key, "/", "-") }

// journal notes what is done; it is on record before anything follows.
func (o outside) journal(name, what string) error {
	f, err := os.OpenFile(filepath.Join(o.dir, name+".journal"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, what)
	return errors.Join(err, f.Close())
}

func (o outside) count(name, what string) int {
	data, _ := os.ReadFile(filepath.Join(o.dir, name+".journal"))
	return bytes.Count(data, []byte(what+"\n"))
}

func (o outside) Probe(_ context.Context, j control.Job) (control.Seen, error) {
	data, err := os.ReadFile(filepath.Join(o.dir, o.name(j)))
	return control.Seen{Met: err == nil && string(data) == "two" && !o.blind}, nil
}

// Act implements control.Effect: each half is journalled in the instant it is
// done, by the name of its file.
func (o outside) Act(_ context.Context, j control.Job) (control.Seen, error) {
	name := o.name(j)
	path := filepath.Join(o.dir, name)
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return control.Seen{}, err
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return control.Seen{}, o.journal(name, "overlap")
	}
	for _, half := range []string{"one", "two"} {
		if o.count(name, half) == 0 || o.blind {
			if err := o.journal(name, half); err != nil {
				return control.Seen{}, err
			}
		}
		if err := os.WriteFile(path, []byte(half), 0o600); err != nil {
			return control.Seen{}, err
		}
	}
	if o.fails {
		return control.Seen{}, errors.New("it fails always")
	}
	return control.Seen{Met: true}, nil
}

func (o outside) Compensate(_ context.Context, j control.Job) (control.Seen, error) {
	err := os.Remove(filepath.Join(o.dir, o.name(j)))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return control.Seen{Met: err == nil}, err
}
