// River beside which the store on PostgreSQL is measured: it prints how many jobs
// a second were inserted, worked on and completed.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

func main() {
	var r run
	dsn := flag.String("dsn", "", "database")
	flag.IntVar(&r.jobs, "n", 10_000, "jobs")
	flag.IntVar(&r.producers, "producers", 64, "producers, and workers")
	flag.BoolVar(&r.feed, "feed", false, "producers only insert; else each waits until its job was worked on")
	flag.Parse()
	rate, err := r.measure(context.Background(), *dsn)
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
	fmt.Println(rate)
}

type run struct {
	jobs, producers int
	feed            bool
}

// args has as much input as a task in swarmdeck's own benchmark.
type args struct {
	Argv []string `json:"argv"`
}

func (args) Kind() string { return "test.run" }

type worker struct {
	river.WorkerDefaults[args]
	worked *sync.Map // of the channels of those who wait, by job; nil where nobody does
}

func (w worker) Work(_ context.Context, job *river.Job[args]) error {
	if w.worked != nil {
		bell(w.worked, job.ID) <- struct{}{}
	}
	return nil
}

// bell rings when a job was worked on.
func bell(worked *sync.Map, id int64) chan struct{} {
	c, _ := worked.LoadOrStore(id, make(chan struct{}, 1))
	return c.(chan struct{})
}

// measure runs all jobs and returns how many a second were done.
func (r run) measure(ctx context.Context, dsn string) (rate float64, err error) {
	conf, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return 0, err
	}
	conf.MaxConns = 32 // of 16, 32, 64 and 90 the fastest on two cores
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	workers := river.NewWorkers()
	var worked *sync.Map
	if !r.feed {
		worked = &sync.Map{}
	}
	river.AddWorker(workers, worker{worked: worked})
	client, err := river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.producers, FetchCooldown: time.Millisecond}},
		FetchCooldown: time.Millisecond, // the least it allows
		Logger:        slog.New(slog.DiscardHandler),
		Workers:       workers,
	})
	if err != nil {
		return 0, err
	}
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: r.jobs + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := r.lives(ctx, client, events, worked); err != nil {
		return 0, err
	}
	took := time.Since(start)
	return float64(r.jobs) / took.Seconds(), client.Stop(ctx)
}

// lives inserts the jobs and waits until each is completed: in batches, which River
// writes every 50 to 250 ms, so that nobody waits for those before the end.
func (r run) lives(ctx context.Context, client *river.Client[pgx.Tx], events <-chan *river.Event, worked *sync.Map) error {
	input := args{Argv: []string{"echo", strings.Repeat("x", 1000)}}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	all.Go(func() {
		for range r.jobs {
			select {
			case <-events:
			case <-ctx.Done():
				return
			}
		}
	})
	var left atomic.Int64
	left.Store(int64(r.jobs))
	for range r.producers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				job, err := client.Insert(ctx, input, nil)
				if err != nil {
					stop(err)
					return
				}
				if worked == nil {
					continue
				}
				select {
				case <-bell(worked, job.Job.ID):
					worked.Delete(job.Job.ID)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
