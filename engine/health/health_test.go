package health_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// ticking is a clock that moves a second each time it is read.
type ticking struct{ now time.Time }

func (c *ticking) Now() time.Time {
	c.now = c.now.Add(time.Second)
	return c.now
}

func TestEachDamagedRecordIsATroubleOfItsOwn(t *testing.T) {
	var changed []string
	var clock ticking
	book := health.New(health.Options{Clock: &clock, Changed: func(tenant string) { changed = append(changed, tenant) }})
	err := errors.Join(
		&core.Damaged{Noun: "session", Key: "s_1", Err: errors.New("no \x1b[31m JSON")},
		fmt.Errorf("read: %w", &core.Damaged{Noun: "budget", Key: "tenant", Err: errors.New("cut short")}),
	)
	book.Report("t_bad", "swarm", "", err)
	book.Report("t_bad", "swarm", "", err)
	book.Report("", "store", "", errors.New("no space left"))
	got := book.Of("t_bad")
	expect.Must(t, len(got) == 3 && got[0].Component == "store" && got[1].About == "session s_1" && got[2].About == "budget tenant" && got[2].Count == 2,
		"troubles: %+v", got)
	expect.Must(t, !strings.ContainsRune(got[1].Reason, '\x1b'), "an escape got through: %q", got[1].Reason)
	other := book.Of("t_good")
	expect.Must(t, len(other) == 1 && other[0].Tenant == "", "troubles of another tenant: %+v", other)
	expect.Must(t, len(changed) == 3, "heard of %q, want each once", changed)
	book.Clear("t_bad", "swarm", "session s_1")
	got = book.Of("t_bad")
	expect.Must(t, len(got) == 2, "after one was cleared: %+v", got)
}

func TestTheBookIsBounded(t *testing.T) {
	book := health.New(health.Options{})
	for i := range 1000 {
		book.Report("t_bad", "swarm", fmt.Sprint(i), errors.New(strings.Repeat("x", 10000)))
	}
	got := book.Of("t_bad")
	expect.Must(t, len(got) == 101 && len(got[0].Reason) <= 510, "%d troubles, reasons of %d bytes", len(got), len(got[0].Reason))
	sum := 0
	for _, one := range got {
		sum += one.Count
	}
	expect.Must(t, sum == 1000, "counted %d, want all", sum)
}

func TestAPassThatFailsRestsAndKeepsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		book := health.New(health.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
		g := book.Guard("scheduler")
		runs, bad := 0, func() error { panic("boom") }
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			wait, err := g.Try(t.Context(), "t_bad", bad)
			expect.Must(t, err == nil && wait == want, "rests %s (%v), want %s", wait, err, want)
			wait, err = g.Try(t.Context(), "t_bad", func() error { runs++; return nil })
			expect.Must(t, err == nil && wait == want && runs == 0, "a tenant that rests was passed: %s, %v", wait, err)
			wait, err = g.Try(t.Context(), "t_good", func() error { return nil })
			expect.Must(t, err == nil && wait == 0, "another tenant: %s, %v", wait, err)
			time.Sleep(want)
		}
		got := book.Of("t_bad")
		expect.Must(t, len(got) == 1 && got[0].Reason == "panic: boom" && got[0].Count == 3, "troubles: %+v", got)
		expect.Must(t, strings.Contains(out.String(), "health_test.go"), "the log has no stack: %s", out.String())
		wait, err := g.Try(t.Context(), "t_bad", func() error { return nil })
		expect.Must(t, err == nil && wait == 0 && len(book.All()) == 0, "after a pass that went well: %s, %v, %+v", wait, err, book.All())
	})
}

func TestWhatNoTenantCausedEndsTheLoop(t *testing.T) {
	g := health.New(health.Options{}).Guard("judge")
	_, err := g.Try(t.Context(), "t_a", func() error { return fmt.Errorf("commit: %w", store.ErrUnusable) })
	expect.Must(t, errors.Is(err, store.ErrUnusable), "got %v", err)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = g.Try(ctx, "t_a", func() error { return errors.New("cut off") })
	expect.Must(t, errors.Is(err, context.Canceled), "got %v", err)
}
