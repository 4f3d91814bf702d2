package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// pass is one that was made, and after how long.
type pass struct {
	tenant string
	due    bool
	after  time.Duration
}

// passes runs a loop over tenants in a bubble and returns what became of it.
func passes(t *testing.T, does func(tenant string, n int) (time.Duration, error), drive func(l *loop.Loop)) (all []pass, book *health.Troubles, err error) {
	t.Helper()
	began := time.Now()
	book = health.New(health.Options{})
	l := loop.New(loop.Options{
		Component: "test", Health: book, Clock: core.SystemClock{},
		Tenants: func(context.Context) ([]string, error) { return []string{"t_a"}, nil },
		Pass: func(_ context.Context, tenant string, due bool) (next time.Time, err error) {
			all = append(all, pass{tenant, due, time.Since(began).Round(10 * time.Millisecond)})
			wait, err := does(tenant, len(all))
			if wait > 0 {
				next = time.Now().Add(wait)
			}
			return next, err
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	done := expect.Later(func() error { return l.Run(ctx) })
	synctest.Wait()
	drive(l)
	stop()
	return all, book, <-done
}

func TestALoopLooksWhenSomethingIsDueOrSomebodyRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, err := passes(t, func(tenant string, n int) (time.Duration, error) {
			if n == 1 {
				return 5 * time.Second, nil
			}
			return 0, nil
		}, func(l *loop.Loop) {
			time.Sleep(time.Second)
			l.Ring("t_a")
			l.Ring("t_a")
			l.Due("t_b", time.Now().Add(time.Second))
			l.Due("t_b", time.Now().Add(time.Hour)) // the earliest counts
			time.Sleep(10 * time.Second)
			l.Due("t_c", time.Now().Add(time.Hour))
			time.Sleep(time.Second)
			l.All()
			time.Sleep(time.Second)
		})
		want := []pass{{"t_a", true, 0}, {"t_a", false, time.Second}, {"t_b", true, 2 * time.Second}, {"t_a", true, 5 * time.Second}, {"t_c", true, 12 * time.Second}}
		expect.True(t, err == nil && slices.Equal(all, want), "%v (%v), want %v", all, err, want)
	})
}

func TestATenantThatFailsRestsAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, book, err := passes(t, func(tenant string, n int) (time.Duration, error) {
			if tenant == "t_a" && n < 3 {
				panic("boom")
			}
			return 0, nil
		}, func(l *loop.Loop) {
			l.Ring("t_b")
			time.Sleep(10 * time.Second)
		})
		want := []pass{{"t_a", true, 0}, {"t_b", false, 0}, {"t_a", true, time.Second}}
		expect.True(t, err == nil && slices.Equal(all, want) && len(book.All()) == 0, "%v (%v), troubles %v; want %v", all, err, book.All(), want)
	})
}

func TestWhatNoTenantCausedEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _, err := passes(t, func(string, int) (time.Duration, error) {
			return 0, fmt.Errorf("commit: %w", store.ErrUnusable)
		}, func(l *loop.Loop) { l.Ring("t_b"); time.Sleep(time.Second) })
		expect.True(t, len(all) == 1 && errors.Is(err, store.ErrUnusable), "%v, %v", all, err)
	})
}
