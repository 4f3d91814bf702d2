package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/store/postgres/postgrestest"
)

// fault is something that fails. inject has it happen to a fleet and returns what
// makes it well again: at once, or after others have carried a change out, where they
// can.
type fault struct {
	name   string
	others bool // others go on meanwhile
	server bool // it is not an engine that fails
	inject func(f *fleet, random *rand.Rand) (heal func())
}

// killed is the end of the engine that is at work, and the start of the next there, whose
// clock is another.
func killed(name string, others bool) fault {
	return fault{name, others, false, func(f *fleet, random *rand.Rand) func() {
		m := f.working()
		m.kill()
		return func() {
			m.wrong(random)
			m.start()
		}
	}}
}

// suspended is that the engine at work stands still for longer than its lease, and
// wakes while another has its place.
func suspended() fault {
	return fault{"SIGSTOP", true, false, func(f *fleet, _ *rand.Rand) func() {
		m := f.working()
		m.signal(unix.SIGSTOP)
		return func() { m.signal(unix.SIGCONT) }
	}}
}

// jumped is that the clock of the engine at work is another from one moment to the next.
func jumped() fault {
	return fault{"clock jumps", false, false, func(f *fleet, random *rand.Rand) func() {
		f.working().wrong(random)
		return func() {}
	}}
}

// restarted is that the database crashes and comes back.
func restarted(t testing.TB, pair *postgrestest.Pair) fault {
	return fault{"PostgreSQL restarts", false, true, func(f *fleet, random *rand.Rand) func() {
		pair.Now.Kill(t)
		f.goesOn(random.IntN(40))
		return func() { pair.Now.Run(t) }
	}}
}

// failedOver is that the database is lost and its standby takes over, which then gets a
// standby.
func failedOver(t testing.TB, pair *postgrestest.Pair) fault {
	return fault{"PostgreSQL fails over", true, true, func(*fleet, *rand.Rand) func() {
		pair.Failover(t)
		return func() { pair.Rejoin(t) }
	}}
}

// cut is that all connections to the database end.
func cut(t testing.TB, pair *postgrestest.Pair, database string) fault {
	return fault{"connections are ended", false, true, func(*fleet, *rand.Rand) func() {
		pair.Now.SQL(t, database, "select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
		return func() {}
	}}
}

// unplugged is that nothing passes between the engine at work and the database.
func unplugged() fault {
	return fault{"link is cut", true, false, func(f *fleet, _ *rand.Rand) func() {
		s := f.working().space
		s.must("link set %s down", s.cable)
		return func() { s.must("link set %s up", s.cable) }
	}}
}

// deaf is that nothing passes in one direction: to the database or, back, from it.
func deaf(n *network, back bool) fault {
	name := "link is cut one way, to PostgreSQL"
	if back {
		name = "link is cut one way, from PostgreSQL"
	}
	return fault{name, true, false, func(f *fleet, _ *rand.Rand) func() {
		return n.deafen(f.working().space, back)
	}}
}

// wrong has the clock off by up to ten minutes.
func (m *machine) wrong(random *rand.Rand) {
	if m.clock == "" {
		return
	}
	f, err := os.OpenFile(m.clock, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Error(err)
		return
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%+020d", random.Int64N(int64(20*time.Minute))-int64(10*time.Minute)); err != nil { // of one length: it is read meanwhile
		m.t.Error(err)
	}
}
