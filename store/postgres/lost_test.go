package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// relay passes connections on to a server, and cuts each after some bytes: in
// the middle of a request, or before its answer.
type relay struct {
	dir, to string
	listen  net.Listener
	cutting atomic.Bool
	mute    atomic.Bool // cuts instead of passing on what a server says
	deaf    atomic.Bool // what a server says is lost, and nobody is told
	cuts    atomic.Int64
	asked   atomic.Int64 // bytes that clients said
	wg      sync.WaitGroup
}

func newRelay(t *testing.T, dsn string) (*relay, string) {
	t.Helper()
	u := expect.Of(url.Parse(dsn))(t)
	q := u.Query()
	r := &relay{dir: t.TempDir(), to: filepath.Join(q.Get("host"), ".s.PGSQL.5432")}
	r.listen = expect.Of(net.Listen("unix", filepath.Join(r.dir, ".s.PGSQL.5432")))(t)
	q.Set("host", r.dir)
	u.RawQuery = q.Encode()
	r.wg.Go(func() {
		for n := 0; ; n++ {
			conn, err := r.listen.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.pass(conn, n) })
		}
	})
	t.Cleanup(func() { _ = r.listen.Close(); r.wg.Wait() })
	return r, u.String()
}

func (r *relay) pass(client net.Conn, n int) {
	defer client.Close()
	server, err := net.Dial("unix", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	// The two ways are cut after different numbers of bytes, other ones each time.
	both.Go(func() { r.copy(server, client, new(atomic.Bool), 1500+int64(n*7919%6000), server, client) })
	both.Go(func() { r.copy(client, server, &r.mute, 500+int64(n*104729%700), server, client) })
	both.Wait()
}

// copy passes bytes on; once its part of them has passed, or none shall, it cuts.
func (r *relay) copy(to io.Writer, from io.Reader, none *atomic.Bool, part int64, ends ...net.Conn) {
	buf := make([]byte, 512)
	for {
		n, err := from.Read(buf)
		switch {
		case none != &r.mute:
			r.asked.Add(int64(n))
		case r.deaf.Load():
			n = 0
		}
		if part -= int64(n); part < 0 && r.cutting.Load() || none.Load() {
			r.cuts.Add(1)
			err = io.ErrClosedPipe
		} else if _, e := to.Write(buf[:n]); e != nil {
			err = e
		}
		if err != nil {
			for _, c := range ends {
				_ = c.Close()
			}
			return
		}
	}
}

func TestACommitWhoseConnectionIsLostIsNeitherLostNorDoneTwice(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "lost")
	r, through := newRelay(t, dsn)
	db := open(t, through, postgres.Options{})
	expect.No(t, db.CreateTenant(t.Context(), acme))
	expect.No(t, db.Update(t.Context(), acme, put("first", "v")))
	r.cutting.Store(true)
	var wg sync.WaitGroup
	const callers, each = 6, 60
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				expect.Is(t, db.Update(t.Context(), acme, put(fmt.Sprintf("%d-%03d", c, i), strings.Repeat("v", 200))), nil, "update")
			}
		})
	}
	wg.Wait()
	r.cutting.Store(false)
	expect.True(t, r.cuts.Load() >= 20, "only %d connections were cut", r.cuts.Load())
	t.Logf("%d connections were cut", r.cuts.Load())
	closed(t, db)
	db = open(t, dsn, postgres.Options{})
	defer closed(t, db)
	have, n := keys(t, db)
	expect.True(t, len(have) == callers*each+1 && n == int64(len(have)), "%d records, counter %d, want %d", len(have), n, callers*each+1)
}

func TestADatabaseThatDoesNotAnswerIsNamed(t *testing.T) {
	r, through := newRelay(t, postgrestest.Start(t).Database(t, "silent"))
	db := open(t, through, postgres.Options{})
	defer closed(t, db)
	_, why := db.Stuck()
	expect.No(t, why)
	r.deaf.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- expect.Fault(db.Tenants(ctx)) }()
	expect.Await(t, "no answer", func() bool { since, why := db.Stuck(); return why != nil && time.Since(since) > 0 })
	_, why = db.Stuck()
	expect.Says(t, why, "database "+db.Name()+": no answer for ")
	expect.True(t, errors.Is(why, store.ErrUnusable), "%v is no fault of a store", why)
	cancel()
	expect.Fails(t, <-asked, "there was an answer")
	r.deaf.Store(false)
	expect.Of(db.Tenants(t.Context()))(t)
	_, why = db.Stuck()
	expect.No(t, why)
}

func TestAServerThatCrashesAndComesBackLosesNothing(t *testing.T) {
	cluster := postgrestest.Start(t)
	db := open(t, cluster.Database(t, "crash"), postgres.Options{})
	defer closed(t, db)
	expect.No(t, db.CreateTenant(t.Context(), acme))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var good atomic.Int64
	for c := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := db.Update(t.Context(), acme, put(fmt.Sprintf("%d-%05d", c, i), "v")); err != nil {
					t.Error(errors.Unwrap(err), err)
					return
				}
				good.Add(1)
			}
		})
	}
	more := func() {
		until := good.Load() + 20
		expect.Await(t, "more is committed", func() bool { return good.Load() >= until || t.Failed() })
	}
	for range 3 {
		more()
		cluster.Kill(t)
		cluster.Run(t)
	}
	more()
	close(stop)
	wg.Wait()
	have, n := keys(t, db)
	expect.True(t, int64(len(have)) == good.Load() && n == good.Load(), "%d records, counter %d, acknowledged %d", len(have), n, good.Load())
}
