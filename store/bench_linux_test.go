package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// The work: a durable task life is three transitions (enqueue, claim,
// complete), each acknowledged after it is on disk, each with an audit record
// of 400 bytes; the input has 1 KiB, the header 350 bytes, the result 120.
var (
	lifeInput  = make([]byte, 1024)
	lifeHeader = make([]byte, 350)
	lifeAudit  = make([]byte, 400)
	lifeResult = make([]byte, 120)
)

// transition is what one step of a life writes.
type transition interface {
	put(bucket string, key, value []byte)
	remove(bucket string, key []byte)
	next(counter string, by int64) int64
}

func id(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func ready(n int64) []byte { return append([]byte{205}, id(n)...) }

func enqueue(t transition) int64 {
	n := t.next("tasks", 1)
	t.next("queued", 1)
	t.put("task", id(n), lifeHeader)
	t.put("input", id(n), lifeInput)
	t.put("ready", ready(n), []byte{})
	t.put("audit", id(t.next("audit", 1)), lifeAudit)
	return n
}

func claim(t transition, n int64) {
	t.next("queued", -1)
	t.next("running", 1)
	t.remove("ready", ready(n))
	t.put("lease", ready(n), id(n))
	t.put("task", id(n), lifeHeader)
	t.put("audit", id(t.next("audit", 1)), lifeAudit)
}

func complete(t transition, n int64) {
	t.next("running", -1)
	t.next("succeeded", 1)
	t.remove("lease", ready(n))
	t.put("task", id(n), lifeHeader)
	t.put("result", id(n), lifeResult)
	t.put("audit", id(t.next("audit", 1)), lifeAudit)
}

// engine is one way to make transitions durable.
type engine interface {
	step(fn func(transition)) error
	close() error
}

// lives runs producers for a while and returns lives per second.
func lives(b *testing.B, e engine, producers int, d time.Duration) float64 {
	b.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range producers {
		wg.Go(func() {
			for time.Since(start) < d {
				var n int64
				for _, fn := range []func(transition){
					func(t transition) { n = enqueue(t) },
					func(t transition) { claim(t, n) },
					func(t transition) { complete(t, n) },
				} {
					if err := e.step(fn); err != nil {
						b.Error(err)
						return
					}
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	rate := float64(done.Load()) / time.Since(start).Seconds()
	expect.No(b, e.close())
	return rate
}

// BenchmarkTaskLife prints lives/s of the store beside one bbolt transaction
// per transition and beside the limit, a grouped append with fdatasync.
// SWARMDECK_BENCH_STORED=1000000 adds runs with so many tasks stored before.
func BenchmarkTaskLife(b *testing.B) {
	const d = time.Second
	stored := []int{0, 100_000}
	if n, err := strconv.Atoi(os.Getenv("SWARMDECK_BENCH_STORED")); err == nil && n > 0 {
		stored = append(stored, n)
	}
	empty := map[int]float64{}
	for _, n := range stored {
		for _, producers := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("stored=%d/producers=%d", n, producers), func(b *testing.B) {
				for b.Loop() {
					ours := lives(b, newStoreEngine(b, n), producers, 2*d)
					b.ReportMetric(ours, "lives/s")
					b.ReportMetric(0, "ns/op")
					if n > 0 {
						b.ReportMetric(empty[producers]/ours, "x-cost-of-empty")
						continue
					}
					empty[producers] = ours
					single := lives(b, newSingleEngine(b), producers, d)
					raw := lives(b, newRawEngine(b), producers, d)
					b.ReportMetric(single, "one-update-each/s")
					b.ReportMetric(raw, "raw-append/s")
					b.ReportMetric(ours/single, "x-one-update-each")
					b.ReportMetric(ours/raw, "of-raw")
				}
			})
		}
	}
}

// storeEngine is this package.
type storeEngine struct{ db *store.DB }

func newStoreEngine(b *testing.B, stored int) engine {
	db := expect.Of(store.Open(filepath.Join(b.TempDir(), "data.db"), store.Options{}))(b)
	expect.No(b, db.CreateTenant(context.Background(), "t_bench"))
	e := storeEngine{db}
	for left := stored; left > 0; left -= 500 {
		expect.No(b, e.step(func(t transition) {
			for range min(left, 500) {
				n := enqueue(t)
				claim(t, n)
				complete(t, n)
			}
		}))
	}
	return e
}

func (e storeEngine) step(fn func(transition)) error {
	return e.db.Update(context.Background(), "t_bench", func(tx store.Tx) error {
		fn(storeStep{tx})
		return nil
	})
}

func (e storeEngine) close() error { return e.db.Close() }

type storeStep struct{ tx store.Tx }

func (s storeStep) put(b string, k, v []byte)     { _ = s.tx.Put(store.Bucket(b), k, v) }
func (s storeStep) remove(b string, k []byte)     { _ = s.tx.Delete(store.Bucket(b), k) }
func (s storeStep) next(c string, by int64) int64 { return s.tx.Add(c, by) }

// singleEngine makes one bbolt transaction per transition.
type singleEngine struct{ db *bbolt.DB }

func newSingleEngine(b *testing.B) engine {
	db := expect.Of(bbolt.Open(filepath.Join(b.TempDir(), "data.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType}))(b)
	return singleEngine{db}
}

func (e singleEngine) step(fn func(transition)) error {
	return e.db.Update(func(tx *bbolt.Tx) error {
		s := &singleStep{tx: tx}
		fn(s)
		return s.err
	})
}

func (e singleEngine) close() error { return e.db.Close() }

type singleStep struct {
	tx  *bbolt.Tx
	err error
}

func (s *singleStep) bucket(name string) *bbolt.Bucket {
	b, err := s.tx.CreateBucketIfNotExists([]byte(name))
	s.keep(err)
	return b
}

func (s *singleStep) keep(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *singleStep) put(b string, k, v []byte) { s.keep(s.bucket(b).Put(k, v)) }
func (s *singleStep) remove(b string, k []byte) { s.keep(s.bucket(b).Delete(k)) }

func (s *singleStep) next(c string, by int64) int64 {
	b := s.bucket("counters")
	n := by
	if v := b.Get([]byte(c)); v != nil {
		n += int64(binary.BigEndian.Uint64(v))
	}
	s.keep(b.Put([]byte(c), id(n)))
	return n
}

// rawEngine appends the same bytes to a file and syncs once per group.
type rawEngine struct {
	f       *os.File
	n       atomic.Int64
	mu      sync.Mutex
	buf     []byte
	waiting []chan error
	bell    chan struct{}
	over    chan struct{}
}

func newRawEngine(b *testing.B) engine {
	f := expect.Of(os.Create(filepath.Join(b.TempDir(), "log")))(b)
	e := &rawEngine{f: f, bell: make(chan struct{}, 1), over: make(chan struct{})}
	go e.run()
	return e
}

func (e *rawEngine) run() {
	defer close(e.over)
	var spare []byte
	for range e.bell {
		e.mu.Lock()
		buf, waiting := e.buf, e.waiting
		e.buf, e.waiting = spare[:0], nil
		e.mu.Unlock()
		_, err := e.f.Write(buf)
		if err == nil {
			err = syscall.Fdatasync(int(e.f.Fd()))
		}
		for _, c := range waiting {
			c <- err
		}
		spare = buf
	}
}

func (e *rawEngine) step(fn func(transition)) error {
	s := rawStep{e: e}
	fn(&s)
	c := make(chan error, 1)
	e.mu.Lock()
	e.buf = append(e.buf, s.buf...)
	e.waiting = append(e.waiting, c)
	e.mu.Unlock()
	select {
	case e.bell <- struct{}{}:
	default:
	}
	return <-c
}

func (e *rawEngine) close() error {
	close(e.bell)
	<-e.over
	return e.f.Close()
}

type rawStep struct {
	e   *rawEngine
	buf []byte
}

func (s *rawStep) put(_ string, k, v []byte)    { s.buf = append(append(s.buf, k...), v...) }
func (s *rawStep) remove(_ string, k []byte)    { s.buf = append(s.buf, k...) }
func (s *rawStep) next(_ string, _ int64) int64 { return s.e.n.Add(1) }
