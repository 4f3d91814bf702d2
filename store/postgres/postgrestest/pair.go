package postgrestest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// Pair is a server with a synchronous standby, which has all that was acknowledged and
// takes its place.
type Pair struct {
	Now  *Cluster // takes writes
	next *Cluster
}

// StartPair starts the two, which end with the test. They listen at two addresses
// to whoever comes from the network that those are in ("" for none), beside their sockets.
func StartPair(t testing.TB, addresses [2]string, network string) *Pair {
	t.Helper()
	quick := "wal_retrieve_retry_interval=100ms" // or a standby is away for 5 s after each restart
	first := Start(t, quick, "listen_addresses="+addresses[0])
	if network != "" {
		rules := filepath.Join(first.data(), "pg_hba.conf")
		f := expect.Of(os.OpenFile(rules, os.O_APPEND|os.O_WRONLY, 0))(t)
		expect.Of(fmt.Fprintf(f, "host all all %s trust\n", network))(t)
		expect.No(t, f.Close())
	}
	p := &Pair{first, prepare(t, []string{quick, "listen_addresses=" + addresses[1]})}
	p.Rejoin(t)
	return p
}

// Failover ends the server at once and has the standby take its place. Rejoin gives that
// one a standby.
func (p *Pair) Failover(t testing.TB) {
	t.Helper()
	p.Now.Kill(t)
	p.Now, p.next = p.next, p.Now
	p.Now.Promote(t)
}

// Rejoin makes the other server a standby, in place of what it had. The first one is
// restarted for its copy.
func (p *Pair) Rejoin(t testing.TB) {
	t.Helper()
	p.next.follow(t, p.Now)
	for end := time.Now().Add(time.Minute); p.Now.SQL(t, "postgres", "select count(*) from pg_stat_replication where state = 'streaming'") != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the standby does not follow")
		}
	}
	p.Now.SQL(t, "postgres", "alter system set synchronous_standby_names = '*'") // the copy, once promoted, waits for nobody
	p.Now.SQL(t, "postgres", "select pg_reload_conf()")
}

// DSN is that of a database on whichever of the two takes writes, by their addresses or,
// without them, their sockets.
func (p *Pair) DSN(t testing.TB, database string, addresses [2]string) string {
	t.Helper()
	p.Now.Database(t, database)
	if addresses[0] == "" {
		return p.Now.Either(database, p.next)
	}
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", strings.Join(addresses[:], ","), database)
}
