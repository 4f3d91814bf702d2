package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

func TestATenantOfADatabaseWhoseEngineFailsIsTriedAgainEverMoreSlowly(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.Start(t)
	u := newUser(t)
	u.onDatabase(t, cluster.Database(t, "retaken"), nil)
	u.ok("tenant", "create", "t_good")
	u.ok("tenant", "create", "t_bad")
	stands := filepath.Join(u.home, "data.t_bad.spill") // in the place of a directory
	expect.No(t, os.RemoveAll(stands))
	expect.No(t, os.WriteFile(stands, []byte("no directory"), 0o600))
	_, end := u.joined(t)
	troubles := func() string { return u.ok("tenant", "troubles", "-o", "json") }
	await(t, "trouble of the tenant", func() bool {
		said := troubles()
		return strings.Contains(said, "t_bad") && !strings.Contains(said, `"count":1,`)
	})
	time.Sleep(4 * time.Second)
	said := troubles()
	if !strings.Contains(said, `"tenant_id":"t_bad"`) || !strings.Contains(said, "taken again at ") {
		t.Errorf("the trouble does not say of whom it is, or when it is tried again:\n%s", said)
	}
	expect.Has(t, u.ok("engine", "list"), "t_good", "the other tenant has no engine")
	var count int
	if _, rest, ok := strings.Cut(said, `"count":`); ok {
		for _, c := range rest {
			if c < '0' || c > '9' {
				break
			}
			count = 10*count + int(c-'0')
		}
	}
	if count < 3 || count > 10 { // 4 times a second were 16 and more
		t.Errorf("it was tried %d times:\n%s", count, said)
	}
	expect.No(t, os.Remove(stands))
	await(t, "end of the trouble", func() bool { return !strings.Contains(troubles(), "t_bad") })
	u.ok("--tenant", "t_bad", "session", "create")
	end(unix.SIGTERM)
}
