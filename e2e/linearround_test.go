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
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/e2e/history"
	"swarmdeck/expect"
)

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
	long := f.long(ctx)
	f.goesOn(f.random.IntN(20))
	at := uptime()
	was := f.working()
	heal := what.inject(f, f.random)
	if !what.others {
		heal()
	}
	f.acknowledged(what, at, was)
	f.t.Logf("round %d: %s: %s", n, what.name, f.took[what.name][len(f.took[what.name])-1].Round(10*time.Millisecond))
	if what.others {
		heal()
	}
	f.goesOn(f.random.IntN(20))
	stop()
	clients.Wait()
	expect.No(f.t, os.WriteFile(filepath.Join(f.dir, "go-"+long.op.Key), nil, 0o600))
	f.mu.Lock()
	f.all = append(f.all, long)
	f.mu.Unlock()
	f.settle()
	f.effects()
	calls := f.rec.Calls()
	f.calls += len(calls)
	if err := history.Check(calls, patience); err != nil {
		f.fatal("%s: %v", what.name, err)
	}
	if n%10 == 9 {
		f.whole()
	}
}

// goesOn waits until clients were told so many answers more, whatever they say.
func (f *fleet) goesOn(n int) {
	f.t.Helper()
	until := len(f.rec.Calls()) + n
	expect.Await(f.t, "clients go on", func() bool { return len(f.rec.Calls()) >= until })
}

// whole checks all of the log, which takes the longer the more there is in it.
func (f *fleet) whole() {
	f.t.Helper()
	f.must("audit", "verify")
	f.must("audit", "reconcile")
}

// long has a task whose process works until the end of the round.
func (f *fleet) long(ctx context.Context) *item {
	f.t.Helper()
	key := fmt.Sprintf("r%d-long", f.n)
	it := &item{op: history.Op{Key: key}, sleep: "until:go-" + key}
	expect.Await(f.t, "the long task runs", func() bool {
		if it.task == "" {
			f.do(ctx, 8, history.Dispatch, it)
		}
		runs, _ := filepath.Glob(filepath.Join(f.dir, "run-"+key+".*"))
		return len(runs) > 0
	})
	return it
}

// acknowledged asks all engines but the one that was at work, where that can't, for a
// change, and keeps how long it took from the fault to the first that was asked for after
// it and acknowledged.
func (f *fleet) acknowledged(what fault, at time.Duration, was *machine) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var asking sync.WaitGroup
	defer func() { cancel(); asking.Wait() }()
	for i, m := range f.machines {
		if what.others && m == was && len(f.machines) > 1 && !what.server {
			continue
		}
		random := rand.New(rand.NewPCG(f.random.Uint64(), 0))
		asking.Go(func() {
			it := f.item(5, i, random)
			expect.Await(f.t, "an answer", func() bool {
				a, _ := f.at(i, 5+i, history.Dispatch, it)
				return a.Outcome == history.Done || ctx.Err() != nil
			})
		})
	}
	first := time.Duration(0)
	expect.Await(f.t, "a command is acknowledged", func() bool {
		for _, c := range f.rec.Calls() {
			if changes(c.Op.Verb) && c.Answer.Outcome == history.Done && c.From > at && (first == 0 || c.To < first) {
				first = c.To
			}
		}
		return first != 0 || ctx.Err() != nil
	})
	if first == 0 {
		for _, m := range f.machines {
			m.signal(unix.SIGQUIT) // it says what it does
			expect.Rests(f.t, "what it says", m.said)
		}
		f.fatal("no command is acknowledged after: %s", what.name)
	}
	f.took[what.name] = append(f.took[what.name], first-at)
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
		expect.Await(f.t, "the end of "+it.op.Key, func() bool {
			verb := history.Show
			if it.task == "" {
				verb = history.Dispatch
			}
			a := f.do(ctx, client, verb, it)
			if ctx.Err() != nil {
				f.fatal("task %s %s does not end: %+v", it.op.Key, it.task, a)
			}
			if a.Status == "queued" && a.Approval != "" {
				f.do(ctx, client, history.Approve, it)
			}
			return a.Outcome == history.Refused || slices.Contains([]string{"succeeded", "failed", "cancelled", "blocked", "timed_out"}, a.Status)
		})
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
		runs := expect.Of(filepath.Glob(filepath.Join(f.dir, "run-"+it.op.Key+".*")))(f.t)
		var text []byte
		begun := 0
		for _, run := range runs {
			said := expect.Of(os.ReadFile(run))(f.t)
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
			switch words[1] {
			case "work":
				c.Op.Verb = history.Work
			case "end":
				c.Op.Verb = history.End
			default:
				c.Op.Verb = history.Begin
				begun++
				f.rec.Seen(history.Call{Client: 10, Op: history.Op{Verb: history.Start, Key: it.op.Key}, Answer: c.Answer, From: asked[it.op.Key], To: c.To})
			}
			f.rec.Seen(c)
		}
		if f.runs += begun; begun > 0 {
			f.again += begun - 1
		}
		if begun > it.attempt+2 { // what the round's fault cuts off is no attempt of the task
			f.fatal("%s %s has %d attempts and ran %d times:\n%s", it.op.Key, it.task, it.attempt+1, begun, text)
		}
	}
}

// report tells figures.
func (f *fleet) report() {
	f.t.Helper()
	f.whole()
	f.t.Logf("%d calls; processes ran %d times, %d of them in place of one that was cut off", f.calls, f.runs, f.again)
	for what, took := range f.took {
		slices.Sort(took)
		if most := took[len(took)-1]; most > tookOver {
			f.t.Errorf("seed %d: %s: the next change was acknowledged after %s", f.seed, what, most)
		}
		f.t.Logf("%s: %d times; the next change was acknowledged after %s at the median, %s at most", what, len(took), took[len(took)/2], took[len(took)-1])
	}
}
