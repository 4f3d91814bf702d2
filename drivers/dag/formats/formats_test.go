package formats_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/drivers/git/gittest"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// rig is a record over a store, with as many tenants as are asked for.
type rig struct {
	*dag.DAG
	t       testing.TB
	db      *store.DB
	ledger  *audit.Ledger
	tenants int
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t}
	r.db = expect.Of(store.Open(filepath.Join(t.TempDir(), "dag.db"), store.Options{}))(r.t)
	t.Cleanup(func() { r.no(r.db.Close()) })
	r.ledger = audit.New(r.db, audit.Options{})
	r.DAG = dag.New(dag.Options{Ledger: r.ledger, Formats: formats.All(gittest.Git(t).Cells)})
	return r
}

func (r *rig) no(err error) {
	r.t.Helper()
	expect.No(r.t, err)
}

// tenant makes a new one.
func (r *rig) tenant() core.Caller {
	r.tenants++
	by := core.Caller{Tenant: fmt.Sprintf("t_n%d", r.tenants), Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	r.no(r.db.CreateTenant(r.t.Context(), by.Tenant))
	return by
}

// fill emits n random events; those that the record refuses are left out.
func (r *rig) fill(by core.Caller, seed uint64, n int) *source {
	s := newSource(seed)
	for range n {
		e := expect.Of(s.event())(r.t)
		if _, err := r.Emit(r.t.Context(), by, e); err != nil {
			expect.Must(r.t, core.AsError(err).Code == core.Conflict, "%s: %v", e.JSON(), err)
			continue
		}
		s.ids = append(s.ids, e.EventID)
	}
	return s
}

// dump is a tenant's whole record as text: every event with its place and
// edges, and what its indexes answer.
func (r *rig) dump(tenant string) string {
	var b strings.Builder
	ctx := r.t.Context()
	put := func(what string, v any, err error) {
		r.t.Helper()
		r.no(err)
		data, err := core.Encode(v)
		r.no(err)
		fmt.Fprintf(&b, "%s %s\n", what, data)
	}
	for page := 1; ; page++ {
		all := expect.Of(r.Events(ctx, tenant, dag.Query{Filter: core.Filter{Page: page, Size: 100}}))(r.t)
		for _, e := range all.Items {
			d, err := r.Get(ctx, tenant, e.Event.EventID)
			d.RecordedAt = dag.Time{}
			slices.SortFunc(d.Edges, func(a, b dag.Edge) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			put("event", d, err)
			s, err := r.At(ctx, tenant, e.Event.EventID)
			put("state", s, err)
		}
		if !all.Info.Next {
			break
		}
	}
	calls, err := r.Calls(ctx, tenant, dag.Query{Filter: core.Filter{Size: 100}})
	put("calls", calls, err)
	for _, off := range []string{"2026-03-04T05:06:30Z", "2026-03-04T05:07:00Z", "2026-03-05T00:00:00Z"} {
		at := expect.Of(dag.ParseTime(off))(r.t)
		res, err := r.Resources(ctx, tenant, dag.TimeQuery{At: at, Filter: core.Filter{Size: 100}})
		put("resources", res, err)
		mounts, err := r.Mounts(ctx, tenant, dag.TimeQuery{At: at, Filter: core.Filter{Size: 100}})
		put("mounts", mounts, err)
	}
	policies, err := r.Policies(ctx, tenant, core.Filter{Size: 100})
	put("policies", policies, err)
	forks, err := r.Forks(ctx, tenant, core.Filter{Size: 100})
	put("forks", forks, err)
	f, err := r.Figures(ctx, tenant)
	put("figures", f, err)
	return b.String()
}

func TestRecordsComeBackFromEveryFormatAsTheyWere(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t)
			from := r.tenant()
			n := []int{70, 1, 0, 40}[seed]
			r.intend(from, r.fill(from, seed, n), n/10)
			want := r.dump(from.Tenant)
			for name := range formats.All(nil) {
				dest := filepath.Join(t.TempDir(), "out")
				done := expect.Of(r.Export(t.Context(), from.Tenant, name, dest))(r.t)
				expect.Fails(t, expect.Fault(r.Export(t.Context(), from.Tenant, name, dest)), name)
				to := r.tenant()
				got, err := r.Import(t.Context(), to, name, dest)
				expect.Must(t, err == nil && got.New == done.Events && got.Events == done.Events, "%s: %+v of %+v: %v", name, got, done, err)
				now := r.dump(to.Tenant)
				expect.True(t, now == want, "%s: another record:\n%s", name, firstDifference(want, now))
				again, err := r.Import(t.Context(), to, name, dest)
				expect.True(t, err == nil && again.New == 0 && again.Events == done.Events, "%s: imported twice: %+v %v", name, again, err)
				now = r.dump(to.Tenant)
				expect.True(t, now == want, "%s: importing twice changed something:\n%s", name, firstDifference(want, now))
			}
		})
	}
}

// lines are a tenant's record as one format writes it: all there is.
func (r *rig) lines(tenant string) string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "lines")
	expect.Of(r.Export(r.t.Context(), tenant, "jsonl", path))(r.t)
	data := expect.Of(os.ReadFile(path))(r.t)
	return string(data)
}

// FuzzRoundTrip drives random records through all formats, one after the other:
// what comes out of the last is what went into the first.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint8(12), uint8(1))
	f.Add(uint64(77), uint8(30), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, events, intents uint8) {
		r := newRig(t)
		by := r.tenant()
		r.intend(by, r.fill(by, seed, int(events%40)), int(intents%4))
		want := r.lines(by.Tenant)
		for _, name := range slices.Sorted(maps.Keys(formats.All(nil))) {
			dest := filepath.Join(t.TempDir(), "out")
			expect.Of(r.Export(t.Context(), by.Tenant, name, dest))(r.t)
			by = r.tenant()
			expect.Of(r.Import(t.Context(), by, name, dest))(r.t)
			now := r.lines(by.Tenant)
			expect.Must(t, now == want, "%s: another record:\n%s", name, firstDifference(want, now))
		}
	})
}

// TestADamagedRecordIsRefusedWholeOrIsTheSame changes single bytes: an import
// takes in nothing, or what was there before.
func TestADamagedRecordIsRefusedWholeOrIsTheSame(t *testing.T) {
	r := newRig(t)
	from := r.tenant()
	r.intend(from, r.fill(from, 11, 20), 2)
	want := r.lines(from.Tenant)
	chance := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for _, name := range []string{"jsonl", "car", "sqlite"} {
		dest := filepath.Join(t.TempDir(), "out")
		expect.Of(r.Export(t.Context(), from.Tenant, name, dest))(r.t)
		sound := expect.Of(os.ReadFile(dest))(r.t)
		for range 30 {
			data := bytes.Clone(sound)
			data[chance.IntN(len(data))] ^= byte(1 << chance.IntN(8))
			r.no(os.WriteFile(dest, data, 0o600))
			to := r.tenant()
			_, err := r.Import(t.Context(), to, name, dest)
			if err == nil {
				now := r.lines(to.Tenant)
				expect.Must(t, now == want, "%s: another record was taken in:\n%s", name, firstDifference(want, now))
				continue
			}
			refused++
			f, err := r.Figures(t.Context(), to.Tenant)
			expect.Must(t, err == nil && f.Events == 0, "%s: %d events were taken in: %v", name, f.Events, err)
		}
	}
	expect.True(t, refused >= 40, "%d of 90 were refused", refused)
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n- %.1500s\n+ %.1500s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, %d lines", len(x), len(y))
}

func TestAnImportGoesOnWhereTheRecordEnded(t *testing.T) {
	r := newRig(t)
	from, to := r.tenant(), r.tenant()
	s := r.fill(from, 9, 40)
	dest := filepath.Join(t.TempDir(), "one")
	expect.Of(r.Export(t.Context(), from.Tenant, "jsonl", dest))(r.t)
	first := expect.Of(r.Import(t.Context(), to, "jsonl", dest))(r.t)
	for range 30 {
		e := expect.Of(s.event())(r.t)
		_, _ = r.Emit(t.Context(), from, e)
	}
	dest += "2"
	expect.Of(r.Export(t.Context(), from.Tenant, "car", dest))(r.t)
	second, err := r.Import(t.Context(), to, "car", dest)
	expect.True(t, err == nil && second.New == second.Events-first.Events && second.New != 0, "%+v after %+v: %v", second, first, err)
	a, b := r.dump(from.Tenant), r.dump(to.Tenant)
	expect.True(t, a == b, "%v", firstDifference(a, b))
}

func TestRecordsThatWentDifferentWaysAreNotMixed(t *testing.T) {
	r := newRig(t)
	a, b := r.tenant(), r.tenant()
	emit := func(by core.Caller, texts ...string) {
		for _, text := range texts {
			e, err := dag.Parse([]byte(`{"kind":"mcp.resource_list_changed","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a","server":"` + text + `"}`))
			r.no(err)
			expect.Of(r.Emit(t.Context(), by, e))(r.t)
		}
	}
	emit(a, "one", "two", "three")
	emit(b, "one", "other")
	before := r.dump(b.Tenant)
	for name := range formats.All(nil) {
		dest := filepath.Join(t.TempDir(), "out")
		expect.Of(r.Export(t.Context(), a.Tenant, name, dest))(r.t)
		expect.Is(t, core.AsError(expect.Fault(r.Import(t.Context(), b, name, dest))).Code, core.Conflict, name)
	}
	expect.Is(t, r.dump(b.Tenant), before, "half of it was taken in")
}
