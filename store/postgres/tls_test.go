package postgres_test

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/store/postgres"
	"swarmdeck/store/postgres/postgrestest"
)

// password must be in no error.
const password = "hidden-W0rd"

// listening starts a server at two addresses of this machine, with a certificate
// for the first of them. A role swarm has a password.
func listening(t *testing.T, ca *postgrestest.Authority, hba string) (c *postgrestest.Cluster, known, other string) {
	t.Helper()
	var at [2]byte
	_, _ = rand.Read(at[:]) // the whole of 127/8 is this machine
	known, other = fmt.Sprintf("127.83.%d.%d", at[0], at[1]), fmt.Sprintf("127.84.%d.%d", at[0], at[1])
	cert, key := ca.Certify(t, known)
	c = postgrestest.Start(t)
	c.Database(t, "tls")
	c.SQL(t, "tls", "create role swarm login password '"+password+"'; grant all on schema public to swarm")
	c.Restart(t, "listen_addresses="+known+","+other, "ssl=on", "ssl_cert_file="+c.File(t, "cert.pem", cert),
		"ssl_key_file="+c.File(t, "key.pem", key), "hba_file="+c.File(t, "hba.conf", []byte("local all postgres trust\n"+hba+"\n")))
	return c, known, other
}

func TestEachModeOfTLSMeansWhatItSays(t *testing.T) {
	t.Parallel()
	ca, stranger := postgrestest.NewAuthority(t), postgrestest.NewAuthority(t)
	c, known, other := listening(t, ca, "host all swarm 127.0.0.0/8 scram-sha-256")
	for _, try := range []struct {
		mode, at, ca string
		want         string // whether the connection is encrypted, or what is wrong
	}{
		{"disable", known, "", "f"},
		{"allow", known, "", "f"},
		{"prefer", known, "", "t"},
		{"require", known, "", "t"},
		{"require", other, ca.File, "t"},
		{"require", known, stranger.File, "certificate signed by unknown authority"},
		{"verify-ca", known, ca.File, "t"},
		{"verify-ca", other, ca.File, "t"},
		{"verify-ca", known, stranger.File, "certificate signed by unknown authority"},
		{"verify-full", known, ca.File, "t"},
		{"verify-full", other, ca.File, "certificate is valid for " + known + ", not " + other},
		{"verify-full", known, stranger.File, "certificate signed by unknown authority"},
		{"verify-full", known, "", "certificate signed by unknown authority"},
		{"verify-all", known, ca.File, "sslmode is invalid"},
		{"verify-full", known, "/none", "unable to read CA file"},
	} {
		t.Run(strings.Join([]string{try.mode, try.want}, " "), func(t *testing.T) {
			dsn := fmt.Sprintf("postgres://swarm:%s@%s/tls?sslmode=%s", password, try.at, try.mode)
			if try.ca != "" {
				dsn += "&sslrootcert=" + url.QueryEscape(try.ca)
			}
			db, err := postgres.Open(t.Context(), dsn, postgres.Options{})
			if err == nil {
				defer closed(t, db)
				err = fmt.Errorf("%s", c.SQL(t, "tls", "select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'swarm'"))
			}
			clearly(t, err, try.want)
		})
	}
}

// clearly checks that an error is one line that says what it must, and no password.
func clearly(t *testing.T, err error, want string) {
	t.Helper()
	expect.True(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n") && !strings.Contains(err.Error(), password),
		"it says %v; want: %s", err, want)
}

func TestAServerThatIsNotAsTheURLSaysIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	ca := postgrestest.NewAuthority(t)
	c, known, _ := listening(t, ca, "hostssl tls swarm,stranger 127.0.0.0/8 scram-sha-256")
	refused := func(want, format string, args ...any) {
		t.Helper()
		db, err := postgres.Open(t.Context(), fmt.Sprintf(format, args...), postgres.Options{Options: store.Options{ReadOnly: true}})
		if err == nil {
			closed(t, db)
		}
		clearly(t, err, want)
	}
	refused("no encryption", "postgres://swarm:%s@%s/tls?sslmode=disable", password, known)
	for _, mode := range []string{"allow", "prefer", "require", "verify-ca"} {
		refused("password authentication failed", "postgres://swarm:%s@%s/tls?sslmode=%s&sslrootcert=%s", password+"x", known, mode, ca.File)
		refused("password authentication failed", "postgres://stranger:%s@%s/tls?sslmode=%s&sslrootcert=%s", password, known, mode, ca.File)
		refused("no pg_hba.conf entry", "postgres://swarm:%s@%s/postgres?sslmode=%s&sslrootcert=%s", password, known, mode, ca.File)
	}
	c.Restart(t, "ssl=off")
	refused("server refused TLS", "host=%s user=swarm password=%s dbname=tls sslmode=require", known, password)
	c.Kill(t)
	for _, mode := range []string{"disable", "allow", "prefer", "require", "verify-full"} {
		refused("connection refused", "postgres://swarm:%s@%s/tls?sslmode=%s", password, known, mode)
	}
}

func TestAURLThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://swarm:" + password + "@host:port/x",
		"postgres://swarm:" + password + "@host:99999999/x",
		"postgres://swarm:" + password + " x@host/x",
		"postgres://swarm:" + password + "%zz@host/x",
		"postgres://swarm:" + password + "@host/x?sslmode=maybe",
		"postgres://swarm:" + password + "@ho st/x",
		"postgres://host/x?connect_timeout=soon&password=" + password,
		"postgres://host/x?sslmode=maybe&password=" + password,
		"postgres://host:port/x?user=swarm&password=" + password,
		"postgres://swarm:" + password + "/with/slashes@host/x",
		"postgres://swarm:" + password + "@host/x?sslmode=`: " + password,
		"host=h port=none password=" + password,
		"host=h port=none password = " + password,
		"host=h port=none password='" + password + "'",
		`host=h port=none password='it\'s ` + password + "'",
		"host=h password='" + password,
		"host=h port=none password=" + password + "\tuser=x",
		"password=" + password + " host",
	} {
		db, err := postgres.Open(t.Context(), dsn, postgres.Options{})
		if err == nil {
			closed(t, db)
		}
		clearly(t, err, "the URL can't be used: ")
	}
}
