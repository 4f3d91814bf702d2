package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// stopped is a database whose commits stand still: somebody has the owner's row.
type stopped struct {
	t       *testing.T
	cluster *postgrestest.Cluster
	name    string
	db      *postgres.DB
	conn    *pgx.Conn
}

// commitsThatStandStill stops the commits of a database until goOn.
func commitsThatStandStill(t *testing.T, name string) *stopped {
	return commitsThatStandStillBy(t, name, func(dsn string) string { return dsn })
}

// commitsThatStandStillBy has them come on another way than straight.
func commitsThatStandStillBy(t *testing.T, name string, way func(dsn string) string) *stopped {
	t.Helper()
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, name)
	s := &stopped{t: t, cluster: cluster, name: name, db: open(t, way(dsn), postgres.Options{Lease: -1})}
	expect.No(t, errors.Join(s.db.CreateTenant(t.Context(), acme), s.db.Update(t.Context(), acme, put("old", "v"))))
	s.conn = expect.Of(pgx.Connect(t.Context(), dsn))(t)
	expect.Of(s.conn.Exec(t.Context(), "begin; select from owner for update"))(t)
	return s
}

func (s *stopped) goOn() {
	s.t.Helper()
	expect.No(s.t, s.conn.Close(context.Background()))
}

// onTheWay waits until a commit stands still.
func (s *stopped) onTheWay() {
	s.t.Helper()
	s.counts("pg_stat_activity where wait_event_type = 'Lock' and query like '%swarmdeck_commit%' and pid <> pg_backend_pid()")
}

// counts waits until there is one row of it.
func (s *stopped) counts(of string) {
	s.t.Helper()
	expect.Await(s.t, "one of "+of, func() bool { return s.cluster.SQL(s.t, s.name, "select count(*) from "+of) == "1" })
}

// two has one update on its way and another run on top of it. What became of them
// comes when both have ended; told counts the hooks that ran.
func (s *stopped) two(told *atomic.Int64) (outcome func() (first, second error)) {
	s.t.Helper()
	hook := func(tx store.Tx) { tx.OnCommit(func() { told.Add(1) }) }
	one, other, ran := make(chan error, 1), make(chan error, 1), make(chan bool)
	go func() {
		one <- s.db.Update(s.t.Context(), acme, func(tx store.Tx) error { hook(tx); return put("first", "v")(tx) })
	}()
	s.onTheWay()
	go func() {
		other <- s.db.Update(s.t.Context(), acme, func(tx store.Tx) error {
			hook(tx)
			v, err := tx.Get("b", []byte("first"))
			ran <- v != nil && err == nil && tx.Counter("n") == 2
			return errors.Join(err, put("second", "v")(tx))
		})
	}()
	expect.True(s.t, <-ran, "an update does not see the one before it, which is on its way")
	return func() (error, error) { return <-one, <-other }
}

func TestWhatRanOnACommitThatFailsFailsWithIt(t *testing.T) {
	s := commitsThatStandStill(t, "follow")
	defer closed(t, s.db)
	var told atomic.Int64
	outcome := s.two(&told)
	s.cluster.SQL(t, s.name, "select pg_cancel_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
	first, second := outcome()
	expect.True(t, first != nil && errors.Is(second, store.ErrUnusable) && told.Load() == 0, "first: %v; second: %v; %d hooks ran", first, second, told.Load())
	s.goOn()
	have, n := keys(t, s.db)
	expect.True(t, slices.Equal(have, []string{"old"}) && n == 1, "%q, counter %d", have, n)
	expect.No(t, s.db.Update(t.Context(), acme, put("third", "v")))
	have, n = keys(t, s.db)
	expect.True(t, slices.Equal(have, []string{"old", "third"}) && n == 2, "after another: %q, counter %d", have, n)
}

func TestACommitThatIsSentAgainKeepsWhatRanOnIt(t *testing.T) {
	s := commitsThatStandStill(t, "again")
	defer closed(t, s.db)
	var told atomic.Int64
	outcome := s.two(&told)
	s.cluster.SQL(t, s.name, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
	s.goOn()
	first, second := outcome()
	expect.True(t, first == nil && second == nil && told.Load() == 2, "first: %v; second: %v; %d hooks ran", first, second, told.Load())
	have, n := keys(t, s.db)
	expect.True(t, slices.Equal(have, []string{"first", "old", "second"}) && n == 3, "%q, counter %d", have, n)
}

func TestACommitWhoseAnswerIsLostCarriesWhatRanOnIt(t *testing.T) {
	var r *relay
	s := commitsThatStandStillBy(t, "answer", func(dsn string) (through string) { r, through = newRelay(t, dsn); return through })
	db := s.db
	defer closed(t, db)
	first, second, ran := make(chan error, 1), make(chan error, 1), make(chan struct{})
	go func() { first <- db.Update(t.Context(), acme, put("first", "v")) }()
	s.onTheWay()
	r.mute.Store(true)
	s.goOn()
	s.counts("kv where key = 'first'")
	go func() {
		second <- db.Update(t.Context(), acme, func(tx store.Tx) error { close(ran); return put("second", "v")(tx) })
	}()
	<-ran
	select {
	case err := <-first:
		t.Errorf("the first is told %v without an answer", err)
	case err := <-second:
		t.Errorf("the second is told %v before the first", err)
	case <-time.After(50 * time.Millisecond):
	}
	r.mute.Store(false)
	expect.No(t, errors.Join(<-first, <-second))
	have, n := keys(t, db)
	expect.True(t, slices.Equal(have, []string{"first", "old", "second"}) && n == 3, "%q, counter %d", have, n)
}

func TestNoViewSeesACommitThatIsOnItsWay(t *testing.T) {
	s := commitsThatStandStill(t, "see")
	defer closed(t, s.db)
	entered, look, seen := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		seen <- s.db.View(t.Context(), acme, func(tx store.Tx) error {
			close(entered)
			<-look
			v, err := tx.Get("b", []byte("first"))
			expect.True(t, v == nil && err == nil, "a view from before sees %q, %v", v, err)
			expect.Is(t, tx.Counter("n"), 1, "a view from before counts")
			return nil
		})
	}()
	<-entered
	var told atomic.Int64
	outcome := s.two(&told)
	close(look)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	expect.Err(t, s.db.View(ctx, acme, func(store.Tx) error { return nil }), context.DeadlineExceeded, "a view that came meanwhile")
	s.goOn()
	first, second := outcome()
	expect.True(t, first == nil && second == nil && <-seen == nil, "%v %v", first, second)
}

func TestWhatAViewSeesIsInTheDatabase(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t, "seen")
	for _, memory := range []int64{3000, postgres.DefaultMemory} { // with little each group waits for the one before
		db := open(t, dsn, postgres.Options{Memory: memory})
		err := db.CreateTenant(t.Context(), acme)
		expect.Must(t, err == nil || errors.Is(err, store.ErrTenantExists), "%v", err)
		other := open(t, dsn, postgres.Options{Options: store.Options{ReadOnly: true}})
		var order []int64 // of the hooks, which share a goroutine
		var begun int64
		_, begun = keys(t, db)
		var wg sync.WaitGroup
		const callers, each = 8, 40
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					told := false
					if err := db.Update(t.Context(), acme, func(tx store.Tx) error {
						n := tx.Add("n", 1)
						tx.OnCommit(func() { told = true; order = append(order, n) })
						return tx.Put("b", []byte{byte(c), byte(i)}, []byte("v"))
					}); err != nil || !told {
						t.Errorf("update: %v; its hook ran: %v", err, told)
					}
				}
			})
			wg.Go(func() {
				for range each / 2 {
					_, now := keys(t, db)
					_, there := keys(t, other)
					expect.True(t, there >= now, "a view counts %d, the database has %d", now, there)
				}
			})
		}
		wg.Wait()
		expect.True(t, len(order) == callers*each && slices.IsSorted(order) && order[0] == begun+1,
			"%d hooks, not in the order of their commits: %v", len(order), order)
		closed(t, other)
		closed(t, db)
	}
}
