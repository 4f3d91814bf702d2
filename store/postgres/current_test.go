package postgres_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// currentEnv names the directory of a current PostgreSQL, which make postgres installs.
const currentEnv = "SWARMDECK_POSTGRES_CURRENT"

// current has the servers of this test and its children be current ones.
func current(t *testing.T) {
	t.Helper()
	dir := os.Getenv(currentEnv)
	if dir == "" {
		postgrestest.Missing(t, currentEnv+" names no current PostgreSQL: make postgres")
	}
	t.Setenv(postgrestest.ServerEnv, dir)
	version := postgrestest.Start(t).SQL(t, "postgres", "show server_version_num")
	n, err := strconv.Atoi(version)
	expect.Must(t, err == nil && n >= 180000, "the server in %s has version %s", dir, version)
}

func TestACurrentServerIsAsGood(t *testing.T) {
	current(t)
	t.Setenv("SWARMDECK_CRASH_ROUNDS", "10")
	again(t, "TestConformance|TestKilledAtAnyInstant.*|TestACommit.*|TestAServerThatCrashes.*|TestAnOwnerWho.*|TestALeaseKeeps.*|TestMigrations.*|TestAViewShows.*")
}

// again runs tests of this package in a process of its own.
func again(t *testing.T, tests string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.short", "-test.timeout=10m", "-test.run=^("+tests+")$")
	out, err := cmd.CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
}
