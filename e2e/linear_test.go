package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/e2e/history"
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

// TestWhatEnginesOnADatabaseToldTheirClientsFitsOneOrder has three machines share a
// database, of which something fails again and again. The clients turn to
// whichever engine answers. SWARMDECK_LINEAR_FAULTS is how many faults.
func TestWhatEnginesOnADatabaseToldTheirClientsFitsOneOrder(t *testing.T) {
	t.Parallel()
	pg := postgrestest.Start(t)
	dsn := pg.Database(t, "linear")
	var machines []*machine
	for range 3 {
		u := newUser(t)
		if len(machines) == 0 {
			u.onDatabase(t, dsn, nil)
			u.ok("tenant", "create", "t_default") // and the keys
		} else {
			u.onDatabase(t, dsn, machines[0].user)
		}
		machines = append(machines, &machine{user: u, path: filepath.Join(u.home, "data")})
	}
	f := newFleet(t, machines...)
	faults := []fault{
		killed("SIGKILL", true), killed("SIGKILL, back at once", false), suspended(), restarted(t, pg), cut(t, pg, "linear"),
	}
	order := f.random.Perm(len(faults))
	for n := range f.number("SWARMDECK_LINEAR_FAULTS", 4) {
		next := faults[f.random.IntN(len(faults))]
		if n < len(order) { // each once
			next = faults[order[n]]
		}
		f.round(n, next)
	}
	f.report()
}

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
	last     atomic.Int32 // the machine whose engine answered last
	calls    int
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
		m.program = m.built()
		m.start()
		t.Cleanup(m.kill)
	}
	for name, text := range map[string]string{
		"linear.yaml": linearPolicy, "linear.jsonl": `{"name":"goes on","input":{"name":"fs_read","arguments":{}},"expect":{"decision":"approve"}}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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

// working is the machine whose engine answered last.
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
	var last string
	for n, end := 0, time.Now().Add(patience); time.Now().Before(end); n++ {
		m := (int(f.last.Load()) + n) % len(f.machines)
		out, said, code, err := f.machines[m].ask(f.dir, slices.Clone(line))
		if code == 0 && err == nil {
			f.last.Store(int32(m))
			return out
		}
		if code == 1 && err == nil {
			f.fatal("%v: %s%s", line, out, said)
		}
		last = fmt.Sprintf("exit %d %v %s", code, err, said)
		time.Sleep(20 * time.Millisecond)
	}
	f.fatal("%v: %s", line, last)
	return ""
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

// round has clients at work while something fails, waits for the end of all that
// they began, and checks what they were told.
func (f *fleet) round(n int, what fault) {
	f.t.Helper()
	f.mu.Lock()
	f.n, f.rec, f.all = n, &history.Recorder{Now: uptime}, nil
	f.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	defer func() { stop(); clients.Wait() }()
	for c := range 5 {
		random := rand.New(rand.NewPCG(f.random.Uint64(), 0))
		if c == 0 {
			clients.Go(func() { f.stopper(ctx, c, random) })
		} else {
			clients.Go(func() { f.client(ctx, c, random) })
		}
	}
	time.Sleep(time.Duration(200+f.random.IntN(800)) * time.Millisecond)
	at := uptime()
	heal := what.inject(f, f.random)
	if !what.others {
		heal()
	}
	f.acknowledged(what.name, at)
	if what.others {
		heal()
	}
	time.Sleep(time.Duration(f.random.IntN(500)) * time.Millisecond)
	stop()
	clients.Wait()
	f.settle()
	f.effects()
	calls := f.rec.Calls()
	f.calls += len(calls)
	if err := history.Check(calls, patience); err != nil {
		f.fatal("%s: %v", what.name, err)
	}
	f.must("audit", "verify")
	f.must("audit", "reconcile")
}

// acknowledged waits for the first change that is asked for after an instant and
// acknowledged, and keeps how long that took.
func (f *fleet) acknowledged(what string, at time.Duration) {
	f.t.Helper()
	await(f.t, "acknowledged command after: "+what, func() bool {
		first := time.Duration(0)
		for _, c := range f.rec.Calls() {
			change := c.Op.Verb != history.Show && c.Op.Verb != history.ShowApproval && c.Op.Verb != history.StopShow
			if change && c.Answer.Outcome == history.Done && c.From > at && (first == 0 || c.To < first) {
				first = c.To
			}
		}
		if first > 0 {
			f.took[what] = append(f.took[what], first-at)
		}
		return first > 0
	})
}

// settle has all that was begun come to its end, and looks at each once more.
func (f *fleet) settle() {
	f.t.Helper()
	const client = 9
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for a := f.do(ctx, client, history.StopShow, &item{}); a.On || a.Outcome != history.Done; a = f.do(ctx, client, history.StopShow, &item{}) {
		f.do(ctx, client, history.StopOff, &item{})
		if ctx.Err() != nil {
			f.fatal("the emergency stop stays on")
		}
	}
	for _, it := range f.items() {
		for {
			verb := history.Show
			if it.task == "" {
				verb = history.Dispatch
			}
			a := f.do(ctx, client, verb, it)
			if ctx.Err() != nil {
				f.fatal("task %s %s does not end: %+v", it.op.Key, it.task, a)
			}
			if a.Outcome == history.Refused || slices.Contains([]string{"succeeded", "failed", "cancelled", "blocked", "timed_out"}, a.Status) {
				break
			}
			if a.Status == "queued" && a.Approval != "" {
				f.do(ctx, client, history.Approve, it)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// effects takes down what the processes of the tasks did.
func (f *fleet) effects() {
	f.t.Helper()
	asked := map[string]time.Duration{}
	for _, c := range f.rec.Calls() {
		if from, known := asked[c.Op.Key]; c.Op.Verb == history.Dispatch && (!known || c.From < from) {
			asked[c.Op.Key] = c.From
		}
	}
	for _, it := range f.items() {
		runs, err := filepath.Glob(filepath.Join(f.dir, "run-"+it.op.Key+".*"))
		if err != nil {
			f.t.Fatal(err)
		}
		var text []byte
		for _, run := range runs {
			said, err := os.ReadFile(run)
			if err != nil {
				f.t.Fatal(err)
			}
			text = append(text, said...)
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			seconds, err := strconv.ParseFloat(words[0], 64)
			if err != nil || len(words) != 3 {
				f.fatal("%s: %q", it.op.Key, line)
			}
			from := time.Duration(seconds * float64(time.Second))
			c := history.Call{Client: 10, Op: it.op, Answer: history.Answer{Outcome: history.Done}, From: from, To: from + 10*time.Millisecond}
			c.Op.ID = words[2]
			if c.Op.Verb = history.End; words[1] == "begin" {
				c.Op.Verb = history.Begin
				f.rec.Seen(history.Call{Client: 10, Op: history.Op{Verb: history.Start, Key: it.op.Key}, Answer: c.Answer, From: asked[it.op.Key], To: c.To})
			}
			f.rec.Seen(c)
		}
	}
}

// report tells figures.
func (f *fleet) report() {
	f.t.Helper()
	f.t.Logf("%d calls", f.calls)
	for what, took := range f.took {
		slices.Sort(took)
		if most := took[len(took)-1]; most > tookOver {
			f.t.Errorf("seed %d: %s: the next change was acknowledged after %s", f.seed, what, most)
		}
		f.t.Logf("%s: %d times; the next change was acknowledged after %s at the median, %s at most", what, len(took), took[len(took)/2], took[len(took)-1])
	}
}
