// Package postgrestest runs throw-away PostgreSQL servers for tests.
package postgrestest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/fnv"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"swarmdeck/expect"
	"swarmdeck/store/postgres"
)

// Cluster is a server of its own, reached by a unix socket.
type Cluster struct {
	dir, bin string
	settings []string            // beyond those of all, as name=value
	follows  string              // how it reaches the server that it is a standby of
	as       *syscall.Credential // postgres refuses to run as root
	server   *exec.Cmd
	log      bytes.Buffer
	pooler   *Pooler // where databases are reached through one
}

// Start starts an empty server that ends with the test, with settings as
// "name=value" beyond those of all.
func Start(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := prepare(t, settings)
	init := c.command("initdb", "-D", c.data(), "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.Run(t)
	if os.Getenv(PoolerEnv) != "" {
		c.pooler = c.Pooler(t)
	}
	return c
}

// prepare makes the directory of a server, which is stopped when the test ends.
func prepare(t testing.TB, settings []string) *Cluster {
	t.Helper()
	c := &Cluster{bin: installed(t), settings: settings}
	var err error
	if c.dir, err = os.MkdirTemp("", "pg"); err != nil { // short: a socket's path has 107 bytes at most
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(c.dir); err != nil {
			t.Error(err)
		}
	})
	expect.No(t, c.give())
	t.Cleanup(func() { c.Kill(t) })
	return c
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
	args := []string{"-D", c.data(), "-k", c.dir}
	for _, s := range append([]string{"listen_addresses=", "shared_buffers=32MB", "fsync=off", "full_page_writes=off", "primary_conninfo=" + c.follows}, c.settings...) {
		args = append(args, "-c", s)
	}
	c.server = c.command("postgres", args...)
	c.server.Stderr = &c.log
	expect.No(t, c.server.Start())
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := say(t, dsn(c.dir, "postgres"), "select 1"); err == nil {
			return
		}
	}
	c.Kill(t)
	t.Fatalf("postgres does not come up: %s", c.log.String())
}

// Kill ends the server at once, as a crash of its machine does to its clients.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	c.end(t, syscall.SIGQUIT) // its children end too
}

func (c *Cluster) end(t testing.TB, how syscall.Signal) {
	t.Helper()
	if c.server == nil {
		return
	}
	expect.No(t, c.server.Process.Signal(how))
	_ = c.server.Wait()
	c.server = nil
}

// Database makes a database if it is missing and returns its DSN.
func (c *Cluster) Database(t testing.TB, name string) string {
	t.Helper()
	_, err := say(t, dsn(c.dir, "postgres"), "create database "+pgx.Identifier{name}.Sanitize()+" template template0")
	if told := new(pgconn.PgError); err != nil && (!errors.As(err, &told) || told.Code != "42P04") { // it is there
		t.Fatal(err)
	}
	if c.pooler != nil {
		return c.pooler.DSN(name)
	}
	return dsn(c.dir, name)
}

func dsn(dir, database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=postgres&sslmode=disable", database, url.QueryEscape(dir))
}

// SQL runs statements in a database and returns their rows, a line each, with a bar
// between columns.
func (c *Cluster) SQL(t testing.TB, database, statements string) string {
	t.Helper()
	out, err := say(t, dsn(c.dir, database), statements)
	expect.No(t, err, statements)
	return out
}

// Try runs statements by a DSN.
func (c *Cluster) Try(t testing.TB, dsn, statements string) error {
	_, err := say(t, dsn, statements)
	return err
}

func say(t testing.TB, dsn, statements string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, statements).ReadAll()
	var lines []string
	for _, r := range results {
		for _, row := range r.Rows {
			lines = append(lines, string(bytes.Join(row, []byte("|"))))
		}
	}
	return strings.Join(lines, "\n"), err
}

// Restart starts the server anew with more settings.
func (c *Cluster) Restart(t testing.TB, settings ...string) {
	t.Helper()
	c.Kill(t)
	c.settings = append(c.settings, settings...)
	c.Run(t)
}

// File writes a file that the server alone may read, and returns its path.
func (c *Cluster) File(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	expect.No(t, os.WriteFile(path, content, 0o600))
	if c.as != nil {
		expect.No(t, os.Chown(path, int(c.as.Uid), int(c.as.Gid)))
	}
	return path
}

// Open opens the store that stands in a database for a path: the tables of each
// are in a schema of its own.
func Open(dsn, path string, opt postgres.Options) (*postgres.DB, error) {
	schema := NameOf(path)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create schema if not exists "+schema); err != nil {
		return nil, err
	}
	return postgres.Open(ctx, dsn+"&search_path="+schema, opt)
}

// NameOf is the name of a database or schema that stands for a path.
func NameOf(path string) string {
	sum := fnv.New64a()
	sum.Write([]byte(path))
	return fmt.Sprintf("d%x", sum.Sum64())
}

// Authority signs certificates of servers.
type Authority struct {
	File string // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	cert, key := a.sign(t, a.cert)
	a.key = key
	expect.No(t, os.WriteFile(a.File, cert, 0o600))
	return a
}

// Certify makes the certificate of a server at an address, and its key, as PEM.
func (a *Authority) Certify(t testing.TB, address string) (cert, key []byte) {
	t.Helper()
	cert, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: address}, NotAfter: a.cert.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	raw := expect.Of(x509.MarshalPKCS8PrivateKey(private))(t)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// sign signs a certificate, which without a key of ours is our own.
func (a *Authority) sign(t testing.TB, cert *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key := expect.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	by := a.key
	if by == nil {
		by = key
	}
	raw := expect.Of(x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, by))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key
}
