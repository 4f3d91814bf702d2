package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/store/postgres/postgrestest"
)

func TestTheTenantsThatAnEnginePrefersAreWithItWhileItIsThere(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	first, second := newUser(t), newUser(t)
	first.onDatabase(t, cluster.Database(t, "prefer"), nil)
	tenants := []string{"t_aa", "t_bb", "t_cc", "t_dd"}
	for _, tenant := range tenants {
		first.ok("tenant", "create", tenant)
	}
	second.onDatabase(t, cluster.Database(t, "prefer"), first)
	_, endFirst := first.joined(t)
	has := func(which string) string {
		return strings.TrimSpace(cluster.SQL(t, "prefer", `select coalesce(string_agg(convert_from(o.tenant, 'UTF8'), ' ' order by o.tenant), '') from owner o join engine e on e.name = o.engine
where o.until > clock_timestamp() and e.until > clock_timestamp() and e.prefer `+which+` ''`))
	}
	epochs := func() string {
		return cluster.SQL(t, "prefer", "select string_agg(epoch::text, ' ' order by tenant) from owner")
	}
	alone := func() {
		t.Helper()
		await(t, "all tenants with the first engine", func() bool { return has("=") == strings.Join(tenants, " ") })
	}
	alone()
	preferring := func() func(unix.Signal) {
		t.Helper()
		_, end := second.joined(t, "--prefer", "t_c*", "--prefer", "t_dd")
		await(t, "the tenants that the second engine prefers, and one more", func() bool {
			is := has("<>")
			first.ok("--tenant", "t_cc", "session", "create") // wherever it is just now
			return is == "t_aa t_cc t_dd" || is == "t_bb t_cc t_dd"
		})
		return end
	}
	end := preferring()
	// They stay there while both engines say three more times that they are up.
	for _, tenant := range tenants { // by then the heir of each has taken it
		first.ok("--tenant", tenant, "session", "create")
	}
	was := epochs()
	since := strings.TrimSpace(cluster.SQL(t, "prefer", "select clock_timestamp()"))
	await(t, "engines that go on", func() bool {
		return strings.TrimSpace(cluster.SQL(t, "prefer", "select bool_and(seen > '"+since+"'::timestamptz + interval '4 seconds') from engine where until > clock_timestamp()")) == "t"
	})
	if now := epochs(); now != was {
		t.Errorf("tenants go to and fro: epochs %s, then %s", was, now)
	}
	if out := first.ok("engine", "list", "-o", "json"); !strings.Contains(out, `"prefer":["t_c*","t_dd"]`) {
		t.Errorf("nothing is preferred:\n%s", out)
	}
	end(unix.SIGKILL)
	alone()
	end = preferring()
	end(unix.SIGTERM)
	alone()
	for _, tenant := range tenants {
		first.ok("--tenant", tenant, "audit", "verify")
	}
	endFirst(unix.SIGTERM)
}
