package e2e

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// joined starts an engine that shares a database with others, until end is called
// with a signal.
func (u *user) joined(t *testing.T, more ...string) (door string, end func(unix.Signal)) {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	door = l.Addr().String()
	expect.No(t, l.Close())
	said := &bytes.Buffer{}
	engine := u.command(append([]string{"serve", "--ssh", door, "--join", door}, more...)...)
	engine.Stderr = said
	expect.No(t, engine.Start())
	ended := expect.Later(func() error { return engine.Wait() })
	gone := false
	end = func(sig unix.Signal) {
		if gone {
			return
		}
		gone = true
		_ = engine.Process.Signal(sig)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = engine.Process.Kill()
			<-ended
			t.Errorf("an engine does not end: %s", said)
		}
	}
	t.Cleanup(func() { end(unix.SIGKILL) })
	expect.Await(t, "engine's door", func() bool {
		c, err := net.Dial("tcp", door)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return door, end
}

func TestEnginesShareTheTenantsOfADatabaseAndEachReachesAll(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	first, second := newUser(t), newUser(t)
	first.onDatabase(t, cluster.Database(t, "engines"), nil)
	tenants := []string{"t_aa", "t_bb", "t_cc", "t_dd"}
	for _, tenant := range tenants {
		first.ok("tenant", "create", tenant)
	}
	second.onDatabase(t, cluster.Database(t, "engines"), first)
	guest := newUser(t) // whose machine has no engine
	guest.onDatabase(t, cluster.Database(t, "engines"), first)
	_, endFirst := first.joined(t)
	_, endSecond := second.joined(t)
	owners := func() map[string]int {
		has := map[string]int{}
		for _, owner := range strings.Fields(cluster.SQL(t, "engines", "select string_agg(engine, ' ') from owner where until > clock_timestamp()")) {
			has[owner]++
		}
		return has
	}
	expect.Await(t, "an even share", func() bool {
		has := owners()
		for _, n := range has {
			if n != 2 {
				return false
			}
		}
		return len(has) == 2
	})
	for _, u := range []*user{first, second, guest} {
		out := u.ok("engine", "list", "-o", "json")
		expect.True(t, strings.Count(out, `"state":"up"`)+strings.Count(out, `"state":"late"`) == 2 && strings.Count(out, `"tenant_count":2`) == 2,
			"not two engines with two tenants each:\n%s", out)
		here := strings.Count(out, `"here":true`)
		expect.True(t, (u == guest) == (here == 0), "%d engines are here:\n%s", here, out)
	}
	for _, tenant := range tenants {
		for _, u := range []*user{first, second} {
			u.ok("--tenant", tenant, "session", "create")
		}
		for _, u := range []*user{first, second} {
			out := u.ok("--tenant", tenant, "session", "list", "-o", "json")
			expect.True(t, strings.Count(out, `"session_id"`) == 2, "%s has not both sessions:\n%s", tenant, out)
		}
	}
	guest.ok("--tenant", "t_aa", "session", "create")
	out := guest.ok("--tenant", "t_aa", "session", "list", "-o", "json")
	expect.True(t, strings.Count(out, `"session_id"`) == 3, "a machine without an engine:\n%s", out)
	// One that is stopped hands over; what one left that was killed is taken.
	endSecond(unix.SIGTERM)
	began := time.Now()
	for _, tenant := range tenants {
		first.ok("--tenant", tenant, "session", "create")
	}
	t.Logf("%d tenants were written to %s after an engine was stopped", len(tenants), time.Since(began))
	_, endSecond = second.joined(t)
	expect.Await(t, "an even share again", func() bool { return len(owners()) == 2 })
	endFirst(unix.SIGKILL)
	began = time.Now()
	for _, tenant := range tenants {
		second.ok("--tenant", tenant, "session", "create")
	}
	t.Logf("%d tenants were written to %s after an engine was killed", len(tenants), time.Since(began))
	expect.Await(t, "engine that is gone", func() bool {
		out := second.ok("engine", "list", "-o", "json")
		return strings.Count(out, `"state":"gone"`) == 1 && strings.Contains(out, `"tenant_count":4`)
	})
	for _, tenant := range tenants {
		out := second.ok("--tenant", tenant, "session", "list", "-o", "json")
		expect.True(t, strings.Count(out, `"session_id"`) >= 4, "%s has not all sessions:\n%s", tenant, out)
		second.ok("--tenant", tenant, "audit", "verify")
		second.ok("--tenant", tenant, "audit", "reconcile")
	}
	endSecond(unix.SIGTERM)
}
