package postgrestest

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
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
