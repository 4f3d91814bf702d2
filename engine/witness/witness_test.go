package witness_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/enginetest"
	"swarmdeck/engine/witness"
	"swarmdeck/expect"
)

const home = "t_home"

var root = core.Caller{Tenant: home, Name: "root", Kind: core.Operator, Door: core.DoorCLI}

// elsewhere keeps lines in memory, by witness.
type elsewhere struct {
	mu   sync.Mutex
	held map[string][]witness.Line
	at   []time.Time
	try  int
	fail func(try int) error
}

func (e *elsewhere) Publish(_ context.Context, w witness.Witness, l witness.Line) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.try++; e.fail != nil {
		if err := e.fail(e.try); err != nil {
			return err
		}
	}
	e.held[w.Name] = append(e.held[w.Name], l)
	e.at = append(e.at, time.Now())
	return nil
}

func (e *elsewhere) Held(_ context.Context, w witness.Witness) iter.Seq2[audit.Kept, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	var text strings.Builder
	for _, l := range e.held[w.Name] {
		text.Write(l.Encode())
	}
	return witness.Read(strings.NewReader(text.String()))
}

// sizes are the sizes of the checkpoints that a witness holds.
func (e *elsewhere) sizes(t *testing.T, name string) (all []uint64) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.held[name] {
		c, err := audit.ParseCheckpoint([]byte(l.Checkpoint))
		expect.Must(t, errors.Is(err, audit.ErrUnsigned), "%v", err)
		all = append(all, c.Size)
	}
	return all
}

type world struct {
	*enginetest.World
	*witness.Witnesses
	to *elsewhere
}

// open opens a data file as a process would; what is elsewhere stays.
func open(t *testing.T, data string, to *elsewhere) *world {
	w := &world{to: to}
	enginetest.New(t, enginetest.Options{Path: data, Tenants: []string{home}, Build: func(e *enginetest.World) {
		w.World = e
		w.Witnesses = witness.New(witness.Options{Ledger: e.Ledger, Driver: to, Tenants: e.DB.Tenants, Watch: e.Watch})
	}})
	return w
}

func newWorld(t *testing.T) *world {
	return open(t, "", &elsewhere{held: map[string][]witness.Line{}})
}

func (w *world) run() { w.Start(w.Run) }

func (w *world) act(n int) {
	w.T.Helper()
	for range n {
		expect.No(w.T, w.Ledger.Refuse(w.T.Context(), root, audit.Entry{Type: "thing.done", Subject: "thing", ID: "x"}, nil))
	}
}

func (w *world) add(name string, every int) {
	w.T.Helper()
	_, action, err := w.Add(w.T.Context(), root, witness.Witness{Name: name, Kind: witness.File, Path: "/elsewhere/" + name, EveryS: every})
	expect.Must(w.T, err == nil && action == "created", "%v %v", action, err)
}

func (w *world) status(name string) witness.Status {
	w.T.Helper()
	all := expect.Of(w.List(w.T.Context(), home))(w.T)
	i := slices.IndexFunc(all, func(s witness.Status) bool { return s.Name == name })
	expect.Must(w.T, i >= 0, "no witness %s", name)
	return all[i]
}

func (w *world) report() audit.Report {
	w.T.Helper()
	r, err := w.Ledger.Verify(w.T.Context(), home, nil)
	if err == nil {
		err = w.Compare(w.T.Context(), home, &r)
	}
	expect.No(w.T, err)
	return r
}

func TestTheNewestCheckpointIsPublishedAtMostSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("a", 10)
		w.run()
		synctest.Wait()
		if got := w.to.sizes(t, "a"); !slices.Equal(got, []uint64{2}) { // the witness, the key
			t.Fatal(got)
		}
		w.act(3)
		time.Sleep(9 * time.Second)
		w.act(2)
		synctest.Wait()
		got := w.to.sizes(t, "a")
		expect.Must(t, len(got) == 1, "%v", got)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got = w.to.sizes(t, "a")
		expect.Must(t, slices.Equal(got, []uint64{2, 7}), "%v", got)
		time.Sleep(time.Hour) // nothing happens: nothing is published
		w.act(1)
		synctest.Wait()
		w.act(1)
		w.Stop() // what is left goes with the end
		got = w.to.sizes(t, "a")
		expect.Must(t, slices.Equal(got, []uint64{2, 7, 8, 9}), "%v", got)
		st := w.status("a")
		expect.True(t, st.Published == 4 && st.Size == 9 && st.Lag == 0 && !st.Failing, "%+v", st)
		r := w.report()
		expect.True(t, r.OK && len(r.Witnesses) == 1 && r.Witnesses[0].Checkpoints == 4 && r.Witnesses[0].Newest == 9, "%+v", r)
	})
}

func TestAWitnessThatFailsIsTriedAgainAndBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		away := errors.New("no route to host")
		w.to.fail = func(try int) error {
			if try <= 5 {
				return away
			}
			return nil
		}
		w.add("a", 1)
		w.run()
		synctest.Wait()
		st := w.status("a")
		w.act(20)
		expect.Must(t, st.Failing && st.LastError == away.Error() && st.Attempts == 1 && st.Published == 0 && st.NextAt.Sub(st.FailedAt) == 2*time.Second,
			"%+v", st)
		time.Sleep(2*time.Second + 4*time.Second + 8*time.Second + 16*time.Second + 32*time.Second + time.Minute)
		synctest.Wait()
		st = w.status("a")
		expect.Must(t, !st.Failing && st.Attempts == 0 && st.Published != 0 && st.LastError == away.Error() && st.Lag == 0, "%+v", st)
		page, err := w.Ledger.List(t.Context(), home, core.Filter{Kind: "witness.*"})
		expect.True(t, err == nil && len(page.Items) == 3 && page.Items[0].EventType == "witness.recovered" && page.Items[1].EventType == "witness.failing",
			"%+v %v", page.Items, err)
	})
}

func TestALogThatWasPutBackIsFound(t *testing.T) {
	to := &elsewhere{held: map[string][]witness.Line{}}
	w := open(t, "", to)
	w.add("a", 1)
	publish := func() { // all there is, by a run that begins and ends
		t.Helper()
		held := w.status("a").Published
		w.run()
		expect.Await(t, "it to be published", func() bool { return w.status("a").Published != held })
		w.Stop()
	}
	w.act(3)
	publish()
	early := w.Copy()
	w.act(3)
	publish()
	if r := w.report(); !r.OK {
		t.Fatal(r.Problems)
	}
	w.Close()
	w = open(t, early, to)
	r := w.report()
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "witness a: line 2: the log was put back to an earlier state: the checkpoint has 8 events, the log 5") {
		t.Errorf("put back: %q", r.Problems)
	}
	w.act(9)
	publish()
	r = w.report()
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "witness a: line 2: the log was rewritten, or put back to an earlier state and continued: its first 8 events") {
		t.Errorf("put back and continued: %q", r.Problems)
	}
	to.held["a"] = to.held["a"][:1]
	r = w.report()
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "witness a: it was cut short: a checkpoint of 14 events was published, it holds up to 5") {
		t.Errorf("a witness without its end: %q", r.Problems)
	}
}

func TestAnAgentAddsNoWitness(t *testing.T) {
	w := newWorld(t)
	by := core.Caller{Tenant: home, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	_, _, err := w.Add(t.Context(), by, witness.Witness{Kind: witness.File, Path: "/x"})
	expect.Is(t, core.AsError(err).Code, core.Denied)
	w.add("a", 1)
	expect.Is(t, core.AsError(expect.Fault(w.Remove(t.Context(), by, "a"))).Code, core.Denied)
}

func TestAWitnessOfTheSamePlaceIsTheSame(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		kind, path, name, action string
		every                    int
	}{
		{witness.File, "/a", "file", "created", 0},
		{witness.File, "/a", "file", "unchanged", 0},
		{witness.File, "/a", "file", "changed", 9},
		{witness.File, "/b/../c", "file-2", "created", 0},
		{witness.Git, "/a", "git", "created", 0},
		{witness.File, "/c", "file-2", "unchanged", 0},
	} {
		got, action, err := w.Add(t.Context(), root, witness.Witness{Kind: c.kind, Path: c.path, EveryS: c.every})
		expect.True(t, err == nil && got.Name == c.name && action == c.action, "%+v: %s %s %v", c, got.Name, action, err)
	}
}
