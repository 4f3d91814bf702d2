package loop_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/health"
	"swarmdeck/engine/loop"
	"swarmdeck/engine/record"
	"swarmdeck/expect"
)

// kept is a kind of which a tenant has one record, which can be read or not.
type kept struct {
	record.Table[string]
	broken atomic.Bool
	value  atomic.Pointer[string]
}

func (k *kept) Called() string { return "record" }

func (k *kept) Map(context.Context, string) (map[string]*string, error) {
	if k.broken.Load() {
		return nil, errors.New("the disk is slow")
	}
	return map[string]*string{"one": k.value.Load()}, nil
}

func TestAWorkerOutlastsARecordThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := "first", "second"
		kind := &kept{}
		kind.value.Store(&first)
		book := health.New(health.Options{})
		var began, ended []string
		crew := &loop.Crew[string]{
			Component: "test", Kind: kind, Health: book, Changed: make(chan struct{}, 1),
			Tenants: func(context.Context) ([]string, error) { return []string{"t_a"}, nil },
			Work: func(ctx context.Context, v *string) error {
				began = append(began, *v)
				<-ctx.Done()
				ended = append(ended, *v)
				return ctx.Err()
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		done := expect.Later(func() error { return crew.Run(ctx) })
		synctest.Wait()
		kind.broken.Store(true)
		kind.value.Store(&second)
		crew.Follow("t_a", "one", &second)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect.True(t, len(began) == 1 && len(ended) == 0 && len(book.Of("t_a")) == 1, "began %q, ended %q, troubles %v", began, ended, book.Of("t_a"))
		kind.broken.Store(false)
		time.Sleep(time.Minute) // nobody rings: it looks again by itself
		synctest.Wait()
		expect.True(t, len(began) == 2 && began[1] == second && len(ended) == 1 && len(book.Of("t_a")) == 0,
			"began %q, ended %q, troubles %v", began, ended, book.Of("t_a"))
		stop()
		expect.Is(t, <-done, nil)
	})
}
