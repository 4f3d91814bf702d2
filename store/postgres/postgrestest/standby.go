package postgrestest

import (
	"fmt"
	"net/url"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Standby starts a server that follows this one, asynchronously, and ends with the
// test. This one is restarted for its copy.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s := prepare(t, append([]string{fmt.Sprintf("primary_conninfo=host=%s user=postgres", c.dir)}, c.settings...))
	c.end(t, syscall.SIGINT)
	if out, err := exec.Command("cp", "-a", c.data(), s.data()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.Run(t)
	s.File(t, "data/standby.signal", nil)
	s.Run(t)
	return s
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
