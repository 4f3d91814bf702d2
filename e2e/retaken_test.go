package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// count is how often something is said to have happened.
func count(said string) (n int) {
	_, rest, _ := strings.Cut(said, `"count":`)
	_, _ = fmt.Sscan(rest, &n)
	return n
}

func TestATenantOfADatabaseWhoseEngineFailsIsTriedAgainEverMoreSlowly(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	u := newUser(t)
	u.onDatabase(t, cluster.Database(t, "retaken"), nil)
	u.ok("tenant", "create", "t_good")
	u.ok("tenant", "create", "t_bad")
	stands := filepath.Join(u.home, "data.run/t_bad/spill") // in the place of a directory
	expect.No(t, os.RemoveAll(stands))
	expect.No(t, os.MkdirAll(filepath.Dir(stands), 0o700))
	expect.No(t, os.WriteFile(stands, []byte("no directory"), 0o600))
	_, end := u.joined(t)
	troubles := func() string { return u.ok("tenant", "troubles", "-o", "json") }
	expect.Await(t, "trouble of the tenant", func() bool {
		said := troubles()
		return strings.Contains(said, "t_bad") && !strings.Contains(said, `"count":1,`)
	})
	began, said := time.Now(), ""
	expect.Await(t, "a fourth try", func() bool { said = troubles(); return count(said) >= 4 })
	took := time.Since(began)
	expect.True(t, strings.Contains(said, `"tenant_id":"t_bad"`) && strings.Contains(said, "taken again at "),
		"the trouble does not say of whom it is, or when it is tried again:\n%s", said)
	expect.Has(t, u.ok("engine", "list"), "t_good", "the other tenant has no engine")
	expect.True(t, took >= time.Second, "it was tried for the fourth time after %s", took)
	expect.No(t, os.Remove(stands))
	expect.Await(t, "end of the trouble", func() bool { return !strings.Contains(troubles(), "t_bad") })
	u.ok("--tenant", "t_bad", "session", "create")
	end(unix.SIGTERM)
}
