package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

var trustLine = regexp.MustCompile(`--tenant (\S+) (audit key trust \S{128})`)

// asks runs a line that a machine refuses because its signing key is not trusted, and
// returns the command that it names.
func (u *user) asks(t *testing.T, line ...string) []string {
	t.Helper()
	code, out, errs := u.run(line...)
	found := trustLine.FindStringSubmatch(out + errs)
	expect.Must(t, code != 0 && found != nil, "%v: exit code %d, and no word of what helps: %s %s", line, code, out, errs)
	return append([]string{"--tenant", found[1]}, strings.Fields(found[2])...)
}

func TestAnEngineTakesTenantsOfADatabaseWhoseLogsTrustItsKeyAndNoOthers(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	first, second := newUser(t), newUser(t)
	for _, u := range []*user{first, second} {
		u.onDatabase(t, cluster.Database(t, "signing"), nil)
	}
	for _, tenant := range []string{"t_aa", "t_bb"} {
		first.ok("tenant", "create", tenant)
		first.ok("--tenant", tenant, "session", "create")
	}
	trust := second.asks(t, "--tenant", "t_aa", "session", "create")
	third := newUser(t)
	third.onDatabase(t, cluster.Database(t, "mine"), nil)
	other := newUser(t)
	other.onDatabase(t, cluster.Database(t, "mine"), nil)
	third.ok("tenant", "create", "t_theirs")
	third.ok("--tenant", "t_theirs", "session", "create")
	other.ok("tenant", "create", "t_mine") // which is no business of the only one there is
	other.ok("--tenant", "t_mine", "session", "create")
	owners := func() string {
		return strings.TrimSpace(cluster.SQL(t, "signing", "select count(distinct engine) || ' ' || count(*) from owner where until > clock_timestamp()"))
	}
	_, endFirst := first.joined(t)
	_, endSecond := second.joined(t)
	expect.Await(t, "the first engine with both tenants", func() bool { return owners() == "1 2" })
	// Lines are passed on; which keys are trusted is not said by them.
	second.ok("--tenant", "t_aa", "session", "create")
	if code, out, errs := second.run(trust...); code == 0 || !strings.Contains(out+errs, "brought this line") {
		t.Errorf("another machine says which keys are trusted: exit code %d %s%s", code, out, errs)
	}
	if code, out, errs := second.run("--tenant", "t_aa", "audit", "key", "endorse", trust[len(trust)-1]); code == 0 || !strings.Contains(out+errs, "it holds for all tenants") {
		t.Errorf("another machine says which keys are trusted everywhere: exit code %d %s%s", code, out, errs)
	}
	first.ok(trust...)
	expect.Await(t, "a tenant at each engine", func() bool { return owners() == "2 2" })
	for _, u := range []*user{first, second} {
		for _, tenant := range []string{"t_aa", "t_bb"} {
			u.ok("--tenant", tenant, "session", "create")
		}
	}
	out := first.ok("--tenant", "t_aa", "audit", "key", "show")
	expect.True(t, strings.Count(out, "signs") == 2, "keys: %s", out)
	// What the dead one had, the other takes that may sign, and only that.
	endFirst(unix.SIGKILL)
	second.ok("--tenant", "t_aa", "session", "create")
	asks := second.asks(t, "--tenant", "t_bb", "session", "create")
	expect.True(t, asks[1] == "t_bb" && asks[len(asks)-1] == trust[len(trust)-1], "asks by %v, and asked by %v before", asks, trust)
	expect.Await(t, "trouble of the tenant that the second can't take", func() bool {
		code, out, _ := second.run("tenant", "troubles", "-o", "json")
		return code == 0 && strings.Contains(out, "audit key trust")
	})
	_, endFirst = first.joined(t)
	expect.Await(t, "the first engine with its tenant again", func() bool { return owners() == "2 2" })
	first.ok(asks...)
	endFirst(unix.SIGTERM)
	second.ok("--tenant", "t_bb", "session", "create")
	for _, tenant := range []string{"t_aa", "t_bb"} {
		second.ok("--tenant", tenant, "audit", "verify")
		first.ok("--tenant", tenant, "audit", "verify", "--data", filepath.Join(first.home, "data"))
	}
	endSecond(unix.SIGTERM)
}

func TestOneCommandAtAnyEngineTrustsAMachineForAllTenantsOfADatabase(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	first, second, third := newUser(t), newUser(t), newUser(t)
	for _, u := range []*user{first, second, third} {
		u.onDatabase(t, cluster.Database(t, "endorsed"), nil)
	}
	tenants := []string{"t_aa", "t_bb", "t_cc"}
	for _, tenant := range tenants {
		first.ok("tenant", "create", tenant)
		first.ok("--tenant", tenant, "session", "create")
	}
	spread := func(n string) {
		t.Helper()
		expect.Await(t, n+" engines with tenants", func() bool {
			return strings.TrimSpace(cluster.SQL(t, "endorsed", "select count(distinct engine) from owner where until > clock_timestamp()")) == n
		})
	}
	request := func(u *user) string {
		asks := u.asks(t, "--tenant", "t_aa", "session", "create")
		return asks[len(asks)-1]
	}
	two, three := request(second), request(third)
	first.joined(t)
	second.joined(t)
	spread("1")
	out := first.ok("--tenant", "t_bb", "audit", "key", "endorse", two)
	expect.True(t, strings.Contains(out, "endorsed key"), "%s", out)
	spread("2")
	third.joined(t)
	expect.Await(t, "a tenant at the second engine, which is refused for those of others", func() bool {
		return slices.ContainsFunc(tenants, func(tenant string) bool {
			code, _, _ := second.run("--tenant", tenant, "audit", "key", "endorse", three)
			return code == 0
		})
	})
	spread("3")
	for _, tenant := range tenants {
		expect.Await(t, "all keys in the log of "+tenant, func() bool {
			return strings.Count(first.ok("--tenant", tenant, "audit", "key", "show"), "signs") == 3
		})
		first.ok("--tenant", tenant, "audit", "verify")
		first.ok("--tenant", tenant, "audit", "reconcile")
	}
}
