package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/expect"
	"swarmdeck/store"
)

// CrashOptions shape a crash test.
type CrashOptions struct {
	// Open opens the store kept in dir, creating it the first time.
	Open func(dir string) (store.Store, error)
	// Rounds is how often the child is killed; 0 means 200, 20 with -short.
	// SWARMDECK_CRASH_ROUNDS sets it from outside and lifts Budget.
	Rounds int
	// Life is the longest time before a kill; 0 means 90 ms.
	Life time.Duration
	// Budget ends the test early on a slow machine; 0 means 25 s.
	Budget time.Duration
	// Load replaces the built-in load in the child process: it works on the
	// store until it is killed and calls ack(line), from any goroutine, for
	// what has been acknowledged to it.
	Load func(ctx context.Context, s store.Store, ack func(line string)) error
	// Verify runs after each reopening, beside the suite's own checks, with
	// every line acknowledged on this store so far.
	Verify func(t testing.TB, dir string, s store.Store, acked []string)
	// Closed runs after each round on the closed store.
	Closed func(t testing.TB, dir string)
}

// Environment of the child process.
const (
	crashDir    = "SWARMDECK_CRASH_DIR"
	crashRounds = "SWARMDECK_CRASH_ROUNDS"
)

// perDir is how many kills one store has to bear before a new one is begun.
const perDir = 40

// Crash runs a load in a child process, kills it with SIGKILL at a random
// instant, opens the store again and checks that every acknowledged change is
// there, no half of one, and that counters equal a recount; hundreds of times.
// It runs the test binary again for the child, so call it from a test of its
// own, once.
func Crash(t *testing.T, opt CrashOptions) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(t, dir, opt)
		return
	}
	rounds, budget := opt.Rounds, opt.Budget
	if rounds == 0 {
		rounds = 200
		if testing.Short() {
			rounds = 20
		}
	}
	if budget == 0 {
		budget = 25 * time.Second
	}
	if n, err := strconv.Atoi(os.Getenv(crashRounds)); err == nil && n > 0 {
		rounds, budget = n, time.Hour
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var dir string
	var acked []string
	start, total := time.Now(), 0
	slow := time.Duration(1) // on a busy machine a child may come to nothing: the next gets twice its time
	for round := range rounds {
		if time.Since(start) > budget && total > 0 {
			t.Logf("stopped after %d of %d kills: out of time", round, rounds)
			break
		}
		if round%perDir == 0 {
			dir, acked = t.TempDir(), nil
		}
		// Now and then at once: while the file is made or opened.
		delay := slow * time.Duration(r.Int64N(int64(cmp.Or(opt.Life, 90*time.Millisecond))))
		if round%5 == 0 {
			delay /= 10
		}
		before := len(acked)
		acked = append(acked, killed(t, dir, delay)...)
		total += len(acked) - before
		if len(acked) > before {
			slow = 1
		} else if round%5 != 0 {
			slow = min(2*slow, 32)
		}
		inspect(t, dir, opt, acked)
		if t.Failed() {
			t.Fatalf("after %d kills (the last after %v, seed %d)", round+1, delay, seed)
		}
	}
	t.Logf("%d changes acknowledged", total)
	if total == 0 {
		t.Error("the child acknowledged nothing: the test has shown nothing")
	}
}

// killed runs the child, kills it after a while and returns what it had
// acknowledged until then.
func killed(t *testing.T, dir string, after time.Duration) []string {
	t.Helper()
	self := expect.Of(os.Executable())(t)
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.timeout=10m") // only for one that nobody kills
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out := expect.Of(cmd.StdoutPipe())(t)
	expect.No(t, cmd.Start())
	timer := time.AfterFunc(after+startUp, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	data := expect.Of(io.ReadAll(out))(t)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v\n%s%s", err, data, stderr.String())
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	var lines []string
	for line := range strings.Lines(string(whole)) {
		if ack, ok := strings.CutPrefix(line, "ack "); ok {
			lines = append(lines, strings.TrimSuffix(ack, "\n"))
		}
	}
	return lines
}

// startUp is roughly what the test binary needs before it opens the store.
const startUp = 8 * time.Millisecond

// crashChild works until it is killed.
func crashChild(t *testing.T, dir string, opt CrashOptions) {
	s, err := opt.Open(dir)
	expect.No(t, err, "child")
	var mu sync.Mutex
	ack := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintf(os.Stdout, "ack %s\n", line); err != nil {
			t.Error(err)
		}
	}
	load := opt.Load
	if load == nil {
		load = Load
	}
	expect.No(t, load(context.Background(), s, ack), "child")
}

// inspect opens the store after a kill.
func inspect(t *testing.T, dir string, opt CrashOptions, acked []string) {
	t.Helper()
	s, err := opt.Open(dir)
	expect.No(t, err, "reopen")
	if opt.Load == nil {
		verifyLoad(t, s, acked)
	}
	if opt.Verify != nil {
		opt.Verify(t, dir, s, acked)
	}
	closeStore(t, s)
	if opt.Closed != nil {
		opt.Closed(t, dir)
	}
}

const (
	crashTenants = 3
	crashWorkers = 12
)

func crashTenant(worker int) string { return fmt.Sprintf("t_crash%d", worker%crashTenants) }

// Load is the built-in load: each worker writes numbered records in pairs,
// moves one live record along and counts; one update in ten fails on purpose.
func Load(ctx context.Context, s store.Store, ack func(string)) error {
	for i := range crashTenants {
		if err := s.CreateTenant(ctx, crashTenant(i)); err != nil && !errors.Is(err, store.ErrTenantExists) {
			return err
		}
	}
	var wg sync.WaitGroup
	failed := make(chan error, crashWorkers)
	for w := range crashWorkers {
		wg.Go(func() { failed <- work(ctx, s, w, ack) })
	}
	wg.Wait()
	return <-failed // the load ends by a kill or by an error
}

// work is one worker of the load. It ends by an error.
func work(ctx context.Context, s store.Store, w int, ack func(string)) error {
	next := 0
	if err := s.View(ctx, crashTenant(w), func(tx store.Tx) error {
		v, err := tx.Get("last", workerKey(w))
		if err == nil && v != nil {
			next, err = strconv.Atoi(string(v))
			next++
		}
		return err
	}); err != nil {
		return err
	}
	for ; ; next++ {
		err := s.Update(ctx, crashTenant(w), func(tx store.Tx) error { return step(tx, w, next) })
		switch {
		case errors.Is(err, errNo) && next%10 == 9:
		case err != nil:
			return fmt.Errorf("worker %d, record %d: %w", w, next, err)
		default:
			ack(fmt.Sprintf("%d %d", w, next))
		}
	}
}

func workerKey(w int) []byte { return fmt.Appendf(nil, "%02d", w) }

func recordKey(w, n int) []byte { return fmt.Appendf(nil, "%02d/%08d", w, n) }

// payload is the value of record n, its length varied so that some records
// have pages of their own.
func payload(w, n int) []byte {
	size := 40 + n*37%600
	if n%50 == 49 {
		size = 20_000
	}
	return bytes.Repeat(fmt.Appendf(nil, "%d:%d,", w, n), 1+size/8)
}

func step(tx store.Tx, w, n int) error {
	key, value := recordKey(w, n), payload(w, n)
	tx.Add("records", 1)
	tx.Add("bytes", int64(len(value)))
	if err := errors.Join(
		tx.Put("left", key, value),
		tx.Put("right", key, value),
		tx.Delete("live", recordKey(w, n-1)),
		tx.Delete("live", recordKey(w, n-2)), // where n-1 failed
		tx.Put("live", key, nil),
		tx.Put("last", workerKey(w), []byte(strconv.Itoa(n))),
	); err != nil {
		return err
	}
	if n%10 == 9 {
		return errNo
	}
	return nil
}

// verifyLoad checks what the built-in load left.
func verifyLoad(t testing.TB, s store.Store, acked []string) {
	t.Helper()
	last := map[int]int{}
	for _, line := range acked {
		var w, n int
		_, err := fmt.Sscan(line, &w, &n)
		expect.No(t, err, "ack", line)
		last[w] = max(last[w], n)
	}
	have := expect.Of(s.Tenants(ctx))(t)
	made := map[string]bool{}
	for _, id := range have {
		made[id] = true
	}
	for w := range crashWorkers {
		if id := crashTenant(w); !made[id] {
			if _, ok := last[w]; ok {
				t.Errorf("tenant %s is gone", id)
			}
			continue
		}
		view(t, s, crashTenant(w), func(tx store.Tx) error { return verifyWorker(t, tx, w, last) })
	}
	for i := range crashTenants {
		if made[crashTenant(i)] {
			view(t, s, crashTenant(i), func(tx store.Tx) error { return recount(t, tx) })
		}
	}
}

// verifyWorker checks one worker's records: all up to the last, in pairs,
// none of the failed ones, at most one beyond what was acknowledged.
func verifyWorker(t testing.TB, tx store.Tx, w int, last map[int]int) error {
	newest := -1
	if v, err := tx.Get("last", workerKey(w)); err != nil {
		return err
	} else if v != nil {
		if newest, err = strconv.Atoi(string(v)); err != nil {
			return err
		}
	}
	if n, ok := last[w]; ok && newest < n {
		t.Errorf("worker %d: record %d was acknowledged, the last there is %d", w, n, newest)
	}
	from, to := fmt.Appendf(nil, "%02d/", w), fmt.Appendf(nil, "%02d0", w)
	for _, b := range []store.Bucket{"left", "right"} {
		next := 0
		if err := tx.Scan(b, from, to, false, func(k, v []byte) (bool, error) {
			if next%10 == 9 {
				next++
			}
			if !bytes.Equal(k, recordKey(w, next)) || !bytes.Equal(v, payload(w, next)) {
				t.Errorf("%s: at %s, want the record of worker %d number %d", b, k, w, next)
				return false, nil
			}
			next++
			return true, nil
		}); err != nil {
			return err
		}
		expect.Is(t, next, newest+1, b, "of worker", w, "ends before", "last is", newest)
	}
	var live []string
	err := tx.Scan("live", from, to, true, func(k, _ []byte) (bool, error) { live = append(live, string(k)); return true, nil })
	if newest >= 0 && (len(live) != 1 || live[0] != string(recordKey(w, newest))) {
		t.Errorf("live records of worker %d: %v, last is %d", w, live, newest)
	}
	return err
}

// recount compares the counters with what is there.
func recount(t testing.TB, tx store.Tx) error {
	var records, size int64
	err := tx.Scan("left", nil, nil, false, func(_, v []byte) (bool, error) {
		records++
		size += int64(len(v))
		return true, nil
	})
	if tx.Counter("records") != records || tx.Counter("bytes") != size {
		t.Errorf("%s: counters say %d records, %d bytes; there are %d, %d", tx.Tenant(),
			tx.Counter("records"), tx.Counter("bytes"), records, size)
	}
	return err
}
