package postgres_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"swarmdeck/engine/enginetest"
	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// suitesEnv names the packages of a long trial.
const suitesEnv = "SWARMDECK_ENGINE_SUITES"

// TestTheEnginesOwnTestsPassOnADatabase runs the suites of the engine over a server.
func TestTheEnginesOwnTestsPassOnADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	engineSuites(t, "./engine/swarm", "./engine/record")
}

// TestTheEnginesOwnTestsPassOnADatabaseOfACurrentServer runs those of the bus alone: what
// versions of a server differ in is this package's, whose own suites run on both.
func TestTheEnginesOwnTestsPassOnADatabaseOfACurrentServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	current(t)
	engineSuites(t, "./engine/bus")
}

func engineSuites(t *testing.T, short ...string) {
	t.Helper()
	args := []string{"test", "-count=1", "-p=1", "-timeout=30m"}
	if suites := os.Getenv(suitesEnv); suites != "" {
		args = append(args, strings.Fields(suites)...)
	} else {
		args = append(append(args, "-short"), short...)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), enginetest.DataEnv+"="+postgrestest.Start(t).Database(t, "engine"))
	out, err := cmd.CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
}
