package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// next is the program of a version to come: it has a name of its own, and knows one
// layout of the tables more.
func next(t *testing.T) string {
	t.Helper()
	replace := map[string]string{}
	for path, change := range map[string][2]string{
		"store/postgres/layout.go": {"\t}\n}\n\n// layoutLock", "\t{sql: `create table to_come (n int)`},\n\t}\n}\n\n// layoutLock"},
		"app/traces.go":            {"return info.Main.Version", `return info.Main.Version + "-next"`},
	} {
		from := expect.Of(filepath.Abs(path))(t)
		text, err := os.ReadFile(from)
		expect.Must(t, err == nil && strings.Count(string(text), change[0]) == 1, "%s: %v, or it has not %q once", path, err, change[0])
		to := filepath.Join(t.TempDir(), filepath.Base(path))
		expect.No(t, os.WriteFile(to, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600))
		replace[from] = to
	}
	overlay := expect.Of(json.Marshal(map[string]any{"Replace": replace}))(t)
	file := filepath.Join(t.TempDir(), "overlay.json")
	expect.No(t, os.WriteFile(file, overlay, 0o600))
	return expect.Of(celltest.Built("swarmdeck-next", "build", "-overlay", file, "swarmdeck"))(t)
}

// upgraded is a machine that has one version of the program after the other, and a
// client there that writes to each tenant in turn.
type upgraded struct {
	*user
	end func(unix.Signal) // of its engine

	mu    sync.Mutex
	made  map[string][]string // by tenant: the sessions that were acknowledged
	times atomic.Int64
	worst time.Duration
}

// has the machine run a version of the program from now on.
func (m *upgraded) has(program string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program = program
}

// now is the user there with the version that is there.
func (m *upgraded) now() *user {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := *m.user
	return &u
}

// write is the client, until stop is closed.
func (m *upgraded) write(tenants []string, stop <-chan struct{}) {
	for {
		for _, tenant := range tenants {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			began := time.Now()
			code, out, stderr := m.now().run("--tenant", tenant, "session", "create", "-o", "json")
			took := time.Since(began)
			expect.Is(m.t, code, 0, "session create: exit", "after", took, stderr)
			m.mu.Lock()
			if id := field(out, "session_id"); id != "" {
				m.made[tenant] = append(m.made[tenant], id)
			}
			m.worst = max(m.worst, took)
			m.mu.Unlock()
		}
		m.times.Add(1)
	}
}

// slowest is how long the slowest write took since it was asked.
func (m *upgraded) slowest() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	worst := m.worst
	m.worst = 0
	return worst
}

// TestEnginesOfADatabaseAreUpgradedOneAfterAnother has clients at both machines write all the time.
func TestEnginesOfADatabaseAreUpgradedOneAfterAnother(t *testing.T) {
	t.Parallel()
	newer := next(t)
	cluster := postgrestest.Start(t)
	dsn := cluster.Database(t, "upgrade")
	tenants := []string{"t_aa", "t_bb", "t_cc"}
	var machines []*upgraded
	for i := range 2 {
		m := &upgraded{user: newUser(t), made: map[string][]string{}}
		m.program = m.built()
		if i == 0 {
			m.onDatabase(t, dsn, nil)
			for _, tenant := range tenants {
				m.ok("tenant", "create", tenant)
			}
		} else {
			m.onDatabase(t, dsn, machines[0].user)
		}
		machines = append(machines, m)
	}
	for _, m := range machines {
		_, m.end = m.joined(t)
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for _, m := range machines {
		clients.Go(func() { m.write(tenants, stop) })
	}
	var once sync.Once
	over := func() { once.Do(func() { close(stop) }); clients.Wait() }
	t.Cleanup(over)
	rounds := func(what string) {
		t.Helper()
		for _, m := range machines {
			from := m.times.Load()
			expect.Await(t, "writes of both machines", func() bool { return m.times.Load() > from+1 })
		}
		t.Logf("%s: no write took longer than %s and %s", what, machines[0].slowest(), machines[1].slowest())
	}
	sql := func(query string) string { return cluster.SQL(t, "upgrade", query) }
	layout := sql("select max(version) from layout")
	again := func(m *upgraded, program, what string) {
		t.Helper()
		m.end(unix.SIGTERM)
		m.has(program)
		_, m.end = m.joined(t)
		expect.Await(t, "a share for each", func() bool {
			return sql("select count(distinct engine) from owner where until > clock_timestamp()") == "2"
		})
		rounds(what)
	}
	rounds("one version")
	again(machines[0], newer, "the first was upgraded")
	if now := sql("select max(version) from layout"); now == layout || sql("select count(distinct version) from engine where until > clock_timestamp()") != "2" {
		t.Errorf("layout %s, before %s; engines %s", now, layout, sql("select host, version from engine"))
	}
	again(machines[1], machines[1].program, "the older one started again beside it")
	again(machines[1], newer, "the second was upgraded")
	over()
	for _, tenant := range tenants {
		listed := strings.Fields(sql("select id from swarmdeck_audit where event_type = 'session.created' and tenant_id = '" + tenant + "'"))
		n := 0
		for _, m := range machines {
			for _, id := range m.made[tenant] {
				n++
				expect.True(t, slices.Contains(listed, id), "%s of %s was acknowledged and is not there", id, tenant)
			}
		}
		t.Logf("%s has %d sessions that were acknowledged", tenant, n)
		machines[1].ok("--tenant", tenant, "audit", "verify")
	}
	for _, m := range machines {
		m.end(unix.SIGTERM)
	}
}
