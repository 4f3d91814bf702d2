package e2e

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/e2e/history"
	"swarmdeck/expect"
	"swarmdeck/store/postgres/postgrestest"
)

// linearPolicy asks for what says so.
const linearPolicy = `
schema: 1
name: linear
rules:
  - {id: ask, gates: [task.start], when: 'action.args.argv.exists(a, a == "ask")', decision: hitl, reason_code: asked, risk: low}
  - {id: rest, gates: [task.start, tool.call, result], when: "true", decision: approve, reason_code: trial, risk: low}
`

// TestWhatAKilledEngineToldItsClientsFitsOneOrder kills the engine of a data file
// again and again while clients work on the same tasks and approvals. One order
// of what they did explains all that they were told, before and after.
// SWARMDECK_LINEAR_KILLS is how many.
func TestWhatAKilledEngineToldItsClientsFitsOneOrder(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	f := newFleet(t, &machine{user: u, path: u.data()})
	for n := range f.number("SWARMDECK_LINEAR_KILLS", 5) {
		f.round(n, killed("SIGKILL", false))
	}
	f.report()
	f.machines[0].end(unix.SIGTERM)
	u.ok("store", "check")
}

// TestWhatEnginesOnADatabaseToldTheirClientsFitsOneOrder has three machines, each behind a
// cable and with a clock of its own, share a database with a synchronous standby. Something
// of it fails again and again. The clients turn to whichever engine answers.
// SWARMDECK_LINEAR_FAULTS is how many faults; where that is said, what is suspended stands
// still for 30 s.
func TestWhatEnginesOnADatabaseToldTheirClientsFitsOneOrder(t *testing.T) {
	t.Parallel()
	n, none := newNetwork(t, 3)
	if none != nil {
		t.Logf("no network name spaces here: no link is cut: %v", none)
		n = &network{spaces: make([]*space, 3)}
	}
	subnet := ""
	if n.net != "" {
		subnet = n.net + "0/24"
	}
	pair := postgrestest.StartPair(t, n.databases, subnet)
	dsn := pair.DSN(t, "linear", n.databases)
	program := expect.Of(wrongClock())(t)
	var machines []*machine
	for i := range 3 {
		u := newUser(t)
		if len(machines) == 0 {
			u.onDatabase(t, dsn, nil)
			u.ok("tenant", "create", "t_default") // and the keys
		} else {
			u.onDatabase(t, dsn, machines[0].user)
		}
		m := &machine{user: u, path: filepath.Join(u.home, "data"), space: n.spaces[i], clock: filepath.Join(u.home, "off")}
		u.program, u.env = program, append(u.env, "SWARMDECK_TEST_CLOCK="+m.clock)
		machines = append(machines, m)
	}
	f := newFleet(t, machines...)
	turns := [][]fault{
		{killed("SIGKILL", true), killed("SIGKILL, back at once", false), suspended()},
		{restarted(t, pair), failedOver(t, pair), cut(t, pair, "linear")},
		{jumped()},
	}
	if none == nil {
		turns = append(turns, []fault{unplugged(), deaf(n, false), deaf(n, true)})
	}
	for n := range f.number("SWARMDECK_LINEAR_FAULTS", len(turns)) {
		may := turns[n%len(turns)]
		f.round(n, may[f.random.IntN(len(may))])
	}
	f.report()
}

// wrongClock is the program with a clock that may be off.
var wrongClock = sync.OnceValues(func() (string, error) {
	return celltest.Built("wrongclock", "build", "swarmdeck/e2e/wrongclock")
})

// tookOver bounds how long clients find nobody who carries a change out: 5 s, and
// three times as much on a busy machine.
const tookOver = 15 * time.Second

// fleet is what clients ask, and what they were told in this round.
type fleet struct {
	t        *testing.T
	machines []*machine
	dir      string // in which tasks run
	seed     uint64
	random   *rand.Rand
	last     atomic.Int32 // the machine whose engine changed something last
	calls    int
	runs     int                        // of tasks' processes
	again    int                        // of them, as the one before was cut off
	took     map[string][]time.Duration // from a fault to the next acknowledged change, by fault

	mu  sync.Mutex
	rec *history.Recorder
	all []*item
	n   int // round
}

func newFleet(t *testing.T, machines ...*machine) *fleet {
	t.Helper()
	f := &fleet{t: t, machines: machines, dir: t.TempDir(), took: map[string][]time.Duration{}}
	f.seed = rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SWARMDECK_LINEAR_SEED"), 10, 64); err == nil {
		f.seed = n
	}
	f.random = rand.New(rand.NewPCG(f.seed, 0))
	t.Logf("seed %d", f.seed)
	for _, m := range machines {
		m.program = cmp.Or(m.program, m.built())
		m.wrong(f.random)
		m.start()
		t.Cleanup(m.kill)
	}
	for name, text := range map[string]string{
		"linear.yaml": linearPolicy, "linear.jsonl": `{"name":"goes on","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"approve"}}` + "\n",
	} {
		expect.No(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	out := f.must("policy", "propose", "linear.yaml", "--tests", "linear.jsonl")
	f.must("policy", "activate", field(out, "policy_id"))
	return f
}

// number is how often a test does what it does, from the environment.
func (f *fleet) number(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// working is the machine whose engine changed something last.
func (f *fleet) working() *machine { return f.machines[f.last.Load()] }

func (f *fleet) history() *history.Recorder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rec
}

func (f *fleet) items() []*item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// item is a new task to be.
func (f *fleet) item(client, n int, random *rand.Rand) *item {
	f.mu.Lock()
	defer f.mu.Unlock()
	it := &item{
		op:    history.Op{Key: fmt.Sprintf("r%d-c%d-%d", f.n, client, n), Asks: random.IntN(5) < 2, Fails: random.IntN(6) == 0},
		sleep: []string{"0", "0.05", "0.3"}[random.IntN(3)],
	}
	f.all = append(f.all, it)
	return it
}

// must has any engine carry a command out.
func (f *fleet) must(line ...string) string {
	f.t.Helper()
	out, n := "", 0
	expect.Await(f.t, fmt.Sprint(line), func() bool {
		m := (int(f.last.Load()) + n) % len(f.machines)
		n++
		got, said, code, err := f.machines[m].ask(f.dir, slices.Clone(line), patience)
		if code == 1 && err == nil && field(said, "code") != "UNAVAILABLE" { // another has it: one that reads alone answers anywhere
			f.fatal("%v: %s%s", line, got, said)
		}
		out = got
		return code == 0 && err == nil
	})
	return out
}

func (f *fleet) fatal(format string, args ...any) {
	f.t.Helper()
	text := fmt.Sprintf(format, args...)
	for i, m := range f.machines {
		text += fmt.Sprintf("\nengine %d: %s", i, m.said())
	}
	f.t.Fatalf("seed %d, round %d: %s", f.seed, f.n, text)
}

// uptime is the clock of all histories, which processes of tasks read too.
func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
