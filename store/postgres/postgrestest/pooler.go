package postgrestest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"swarmdeck/expect"
)

// PoolerEnv, when set, has every database be reached through a pooler of its server.
const PoolerEnv = "SWARMDECK_POSTGRES_POOLER"

// Pooler is a pgbouncer in transaction mode before a server.
type Pooler struct {
	of  *Cluster
	dir string
	run *exec.Cmd
	log bytes.Buffer
}

// Pooler starts one that ends with the test.
func (c *Cluster) Pooler(t testing.TB) *Pooler {
	t.Helper()
	p := &Pooler{of: c, dir: filepath.Join(c.dir, "pool")}
	settings := fmt.Sprintf(`[databases]
* = host=%s user=postgres
[pgbouncer]
unix_socket_dir = %s
listen_addr =
listen_port = 5432
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
server_login_retry = 0.1
`, c.dir, p.dir)
	expect.No(t, os.Mkdir(p.dir, 0o700))
	expect.No(t, os.WriteFile(p.file(), []byte(settings), 0o644))
	if c.as != nil {
		expect.No(t, os.Chown(p.dir, int(c.as.Uid), int(c.as.Gid)))
	}
	p.Run(t)
	t.Cleanup(func() { p.Kill(t) })
	return p
}

func (p *Pooler) file() string { return filepath.Join(p.dir, "pgbouncer.ini") }

// Run starts the pooler, which must not run.
func (p *Pooler) Run(t testing.TB) {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/pgbouncer") // which users have not on their PATH
	}
	if err != nil {
		Missing(t, "no pgbouncer is installed: apt-get install pgbouncer")
	}
	p.log.Reset()
	p.run = exec.Command(path, "-q", p.file())
	p.run.Dir, p.run.SysProcAttr, p.run.Stderr = p.dir, &syscall.SysProcAttr{Credential: p.of.as}, &p.log
	expect.No(t, p.run.Start())
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := say(t, p.DSN("postgres"), "select 1"); err == nil {
			return
		}
	}
	p.Kill(t)
	t.Fatalf("pgbouncer does not come up: %s", p.log.String())
}

// Kill ends the pooler at once.
func (p *Pooler) Kill(t testing.TB) {
	t.Helper()
	if p.run == nil {
		return
	}
	err := p.run.Process.Kill()
	_ = p.run.Wait()
	p.run = nil
	// What is left of it would keep the next one from starting.
	expect.No(t, cmp.Or(err, os.RemoveAll(filepath.Join(p.dir, ".s.PGSQL.5432"))))
}

// DSN is how a database of the server is reached through the pooler.
func (p *Pooler) DSN(database string) string { return dsn(p.dir, database) }
