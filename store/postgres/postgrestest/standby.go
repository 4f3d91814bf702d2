package postgrestest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// Standby starts a server that follows this one, asynchronously, and ends with the
// test. This one is restarted for its copy.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s := prepare(t, c.settings)
	s.follow(t, c)
	return s
}

// follow starts a server as the standby of another, in place of what it had. That one is
// restarted for its copy.
func (c *Cluster) follow(t testing.TB, primary *Cluster) {
	t.Helper()
	expect.No(t, os.RemoveAll(c.data()))
	primary.end(t, syscall.SIGINT)
	if out, err := exec.Command("cp", "-a", primary.data(), c.data()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	primary.Run(t)
	c.follows = fmt.Sprintf("host=%s user=postgres", primary.dir)
	c.File(t, "data/standby.signal", nil)
	c.Run(t)
}

// CaughtUp waits until a standby has all that there is.
func (c *Cluster) CaughtUp(t testing.TB, s *Cluster) {
	t.Helper()
	at := c.SQL(t, "postgres", "select pg_current_wal_flush_lsn()")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if s.SQL(t, "postgres", "select coalesce(pg_last_wal_replay_lsn(), '0/0') >= '"+at+"'") == "t" {
			return
		}
	}
	t.Fatal("the standby does not catch up")
}

// Promote makes a standby a server of its own.
func (c *Cluster) Promote(t testing.TB) {
	t.Helper()
	if c.SQL(t, "postgres", "select pg_promote()") != "t" {
		t.Fatal("the standby is not promoted")
	}
}

// Either is the DSN of a database that is on one of two servers, the one that takes
// writes.
func (c *Cluster) Either(database string, other *Cluster) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=postgres&sslmode=disable&target_session_attrs=read-write&connect_timeout=5", database, url.QueryEscape(c.dir+","+other.dir))
}

// DSN is how a database of the server is reached.
func (c *Cluster) DSN(database string) string { return dsn(c.dir, database) }

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

// StartDurable is Start of a server that syncs, with the settings it comes with: for
// benchmarks.
func StartDurable(t testing.TB) *Cluster {
	t.Helper()
	return Start(t, "fsync=on", "full_page_writes=on", "shared_buffers=128MB",
		"max_wal_size=4GB") // or the checkpoints of one fall into the time of another
}

// ProcessorTime is what the server's processes have taken since it started. It reads
// /proc, where there is one.
func (c *Cluster) ProcessorTime(t testing.TB) (sum time.Duration) {
	t.Helper()
	const tick = time.Second / 100 // of the kernel's figures
	all := expect.Of(filepath.Glob("/proc/[0-9]*/stat"))(t)
	main := strconv.Itoa(c.server.Process.Pid)
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // from the third on
		if len(fields) < 15 {
			continue
		}
		from := fields[11:11] // user and system, and those of children that ended
		switch {
		case filepath.Dir(name) == fmt.Sprint("/proc/", main):
			from = fields[11:15]
		case string(fields[1]) == main:
			from = fields[11:13]
		}
		for _, ticks := range from {
			n := expect.Of(strconv.Atoi(string(ticks)))(t)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
