// Package postgrestest runs throw-away PostgreSQL servers for tests.
package postgrestest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Cluster is a server of its own, reached by a unix socket.
type Cluster struct {
	dir, bin string
	as       *syscall.Credential // postgres refuses to run as root
	server   *exec.Cmd
	log      bytes.Buffer
}

// Start starts an empty server that ends with the test. Without PostgreSQL the
// test is skipped, where it may be.
func Start(t testing.TB) *Cluster {
	t.Helper()
	bin := installed()
	if bin == "" {
		const missing = "no PostgreSQL is installed: apt-get install postgresql"
		if os.Getenv("SWARMDECK_CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	dir, err := os.MkdirTemp("", "pg") // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &Cluster{dir: dir, bin: bin}
	if err := c.give(); err != nil {
		t.Fatal(err)
	}
	init := c.command("initdb", "-D", c.data(), "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.Run(t)
	t.Cleanup(func() { c.Kill(t) })
	return c
}

func installed() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // the other programs are beside it
			return filepath.Dir(path)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1])
}

// give hands the directory to the user that the server runs as.
func (c *Cluster) give() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := cmp.Or(uidErr, gidErr); err != nil {
		return err
	}
	c.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(c.dir, int(uid), int(gid))
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, &syscall.SysProcAttr{Credential: c.as}
	return cmd
}

// Run starts the server, which must not run.
func (c *Cluster) Run(t testing.TB) {
	t.Helper()
	c.log.Reset()
	c.server = c.command("postgres", "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "shared_buffers=32MB",
		"-c", "fsync=off", "-c", "full_page_writes=off")
	c.server.Stderr = &c.log
	if err := c.server.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c.command("pg_isready", "-q", "-h", c.dir).Run() == nil {
			return
		}
	}
	c.Kill(t)
	t.Fatalf("postgres does not come up: %s", c.log.String())
}

// Kill ends the server at once, as a crash of its machine does to its clients.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	if c.server == nil {
		return
	}
	if err := c.server.Process.Signal(syscall.SIGQUIT); err != nil { // its children end too
		t.Error(err)
	}
	_ = c.server.Wait()
	c.server = nil
}

// Database makes a database if it is missing and returns its DSN.
func (c *Cluster) Database(t testing.TB, name string) string {
	t.Helper()
	if out, err := c.command("createdb", "-h", c.dir, "-U", "postgres", "-T", "template0", name).CombinedOutput(); err != nil && !bytes.Contains(out, []byte("already exists")) {
		t.Fatalf("createdb: %v\n%s", err, out)
	}
	return fmt.Sprintf("postgres:///%s?host=%s&user=postgres&sslmode=disable", name, url.QueryEscape(c.dir))
}

// SQL runs statements in a database and returns what they say.
func (c *Cluster) SQL(t testing.TB, database, statements string) string {
	t.Helper()
	out, err := c.command("psql", "-h", c.dir, "-U", "postgres", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statements, database).CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return string(bytes.TrimSpace(out))
}
