package formats_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarmdeck/drivers/dag/formats"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
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
	var err error
	r.db, err = store.Open(filepath.Join(t.TempDir(), "dag.db"), store.Options{})
	r.no(err)
	t.Cleanup(func() { r.no(r.db.Close()) })
	r.ledger = audit.New(r.db, audit.Options{})
	r.DAG = dag.New(dag.Options{Ledger: r.ledger, Formats: formats.All()})
	return r
}

func (r *rig) no(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
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
		e, err := s.event()
		r.no(err)
		if _, err := r.Emit(r.t.Context(), by, e); err != nil {
			if core.AsError(err).Code != core.Conflict {
				r.t.Fatalf("%s: %v", e.JSON(), err)
			}
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
		all, err := r.Events(ctx, tenant, dag.Query{Filter: core.Filter{Page: page, Size: 100}})
		r.no(err)
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
		at, err := dag.ParseTime(off)
		r.no(err)
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
			n := []int{150, 1, 0, 60}[seed]
			r.fill(from, seed, n)
			want := r.dump(from.Tenant)
			for name := range formats.All() {
				dest := filepath.Join(t.TempDir(), "out")
				done, err := r.Export(t.Context(), from.Tenant, name, dest)
				r.no(err)
				if _, err := r.Export(t.Context(), from.Tenant, name, dest); err == nil {
					t.Errorf("%s: what is there was written over", name)
				}
				to := r.tenant()
				got, err := r.Import(t.Context(), to, name, dest)
				if err != nil || got.New != done.Events || got.Events != done.Events {
					t.Fatalf("%s: %+v of %+v: %v", name, got, done, err)
				}
				if now := r.dump(to.Tenant); now != want {
					t.Errorf("%s: another record:\n%s", name, firstDifference(want, now))
				}
				again, err := r.Import(t.Context(), to, name, dest)
				if err != nil || again.New != 0 || again.Events != done.Events {
					t.Errorf("%s: imported twice: %+v %v", name, again, err)
				}
				if now := r.dump(to.Tenant); now != want {
					t.Errorf("%s: importing twice changed something:\n%s", name, firstDifference(want, now))
				}
			}
		})
	}
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
	_, err := r.Export(t.Context(), from.Tenant, "jsonl", dest)
	r.no(err)
	first, err := r.Import(t.Context(), to, "jsonl", dest)
	r.no(err)
	for range 30 {
		e, err := s.event()
		r.no(err)
		_, _ = r.Emit(t.Context(), from, e)
	}
	dest += "2"
	_, err = r.Export(t.Context(), from.Tenant, "car", dest)
	r.no(err)
	second, err := r.Import(t.Context(), to, "car", dest)
	if err != nil || second.New != second.Events-first.Events || second.New == 0 {
		t.Errorf("%+v after %+v: %v", second, first, err)
	}
	if a, b := r.dump(from.Tenant), r.dump(to.Tenant); a != b {
		t.Error(firstDifference(a, b))
	}
}

func TestRecordsThatWentDifferentWaysAreNotMixed(t *testing.T) {
	r := newRig(t)
	a, b := r.tenant(), r.tenant()
	emit := func(by core.Caller, texts ...string) {
		for _, text := range texts {
			e, err := dag.Parse([]byte(`{"kind":"mcp.resource_list_changed","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a","server":"` + text + `"}`))
			r.no(err)
			_, err = r.Emit(t.Context(), by, e)
			r.no(err)
		}
	}
	emit(a, "one", "two", "three")
	emit(b, "one", "other")
	before := r.dump(b.Tenant)
	for name := range formats.All() {
		dest := filepath.Join(t.TempDir(), "out")
		_, err := r.Export(t.Context(), a.Tenant, name, dest)
		r.no(err)
		if _, err := r.Import(t.Context(), b, name, dest); core.AsError(err).Code != core.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := r.dump(b.Tenant); now != before {
		t.Error("half of it was taken in")
	}
}

// tamper changes an export.
type tamper struct {
	name   string
	format string
	do     func(t *testing.T, path string)
	names  bool // the error names the event
}

func edit(from, to string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte(from)) {
			t.Fatalf("%q is not in it", from)
		}
		if err := os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func sql(line string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		if _, err := exec.LookPath("sqlite3"); err != nil {
			t.Skip("sqlite3 is not installed")
		}
		if out, err := exec.Command("sqlite3", path, line).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func dropLine(n int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		if err := os.WriteFile(path, []byte(strings.Join(slices.Delete(lines, n, n+1), "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// inGit changes a file of a branch's newest commit, and commits that.
func inGit(branch, script string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", "git checkout -q "+branch+"; "+script+"; git add -A; git -c user.name=x -c user.email=x commit -qm x")
		cmd.Dir = path
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func TestATamperedImportIsRefused(t *testing.T) {
	r := newRig(t)
	from := r.tenant()
	var last dag.Event
	for i, line := range []string{
		`{"kind":"run_started","ts":"2026-01-02T03:04:05Z","run_id":"r","agent_id":"a","nodes":[{"type":"Message","id":"m","role":"user","content":[],"created_at":"2026-01-02T03:04:05Z"}]}`,
		`{"kind":"mcp.resource_updated","ts":"2026-01-02T03:04:06Z","run_id":"r","agent_id":"a","server":"files","uri":"u://SECRET"}`,
		`{"kind":"run_finished","ts":"2026-01-02T03:04:07Z","run_id":"r","agent_id":"a"}`,
	} {
		e, err := dag.Parse([]byte(line))
		r.no(err)
		_, err = r.Emit(t.Context(), from, e)
		r.no(err)
		if i == 1 {
			last = e
		}
	}
	for _, c := range []tamper{
		{"value", "jsonl", edit(`"uri":"u://SECRET"}`, `"uri":"u://PUBLIC"}`), true},
		{"edge", "jsonl", edit(`"attrs":{"uri":"u://SECRET"}`, `"attrs":{"uri":"u://PUBLIC"}`), true},
		{"edge type", "jsonl", edit(`"type":"MCP_RESOURCE_UPDATED"`, `"type":"EVENT_CONSUMES"`), true},
		{"seq", "jsonl", edit(`"pos":2,"seq":2`, `"pos":2,"seq":3`), true},
		{"missing", "jsonl", dropLine(1), false},
		{"tail", "jsonl", dropLine(2), false},
		{"end", "jsonl", dropLine(3), false},
		{"order", "jsonl", edit(`"pos":2`, `"pos":1`), true},
		{"garbage", "jsonl", edit(`{"pos":2`, `{"pos":two`), false},

		{"value", "sqlite", sql(`UPDATE events SET event = replace(event, 'SECRET', 'PUBLIC') WHERE pos = 2`), true},
		{"column", "sqlite", sql(`UPDATE events SET agent_id = 'b' WHERE pos = 2`), true},
		{"column type", "sqlite", sql(`UPDATE events SET trace_id = x'00' WHERE pos = 2`), true},
		{"edge", "sqlite", sql(`UPDATE edges SET uri = 'u://PUBLIC' WHERE type = 'MCP_RESOURCE_UPDATED'`), true},
		{"no edge", "sqlite", sql(`DELETE FROM edges WHERE type = 'MCP_RESOURCE_UPDATED'`), true},
		{"node", "sqlite", sql(`UPDATE nodes SET node = replace(node, 'user', 'system')`), false},
		{"no node", "sqlite", sql(`DELETE FROM nodes`), false},
		{"stray edge", "sqlite", sql(`INSERT INTO edges SELECT 99, i, type, from_type, from_id, to_type, to_id, seq, list, uri, mount, mode, valid_from, valid_to FROM edges LIMIT 1`), false},
		{"missing", "sqlite", sql(`DELETE FROM events WHERE pos = 3; DELETE FROM edges WHERE pos = 3`), false},
		{"no table", "sqlite", sql(`DROP TABLE manifest`), false},
		{"a view", "sqlite", sql(`ALTER TABLE events RENAME TO e; CREATE VIEW events AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n FROM x) SELECT * FROM e, x`), false},

		{"value", "car", edit(`"uri":"u://SECRET"}`, `"uri":"u://PUBLIC"}`), false},
		{"edge", "car", edit(`"attrs":{"uri":"u://SECRET"}`, `"attrs":{"uri":"u://PUBLIC"}`), false},
		{"event", "car", edit(`"server":"files","ts"`, `"server":"filez","ts"`), true},

		{"value", "git", inGit("agents/a", `sed -i 's#"uri":"u://SECRET"}#"uri":"u://PUBLIC"}#' segments/run-r/*.jsonl`), true},
		{"missing", "git", inGit("agents/a", `git rm -q -r segments; touch x`), false},
		{"manifest", "git", inGit("record", `sed -i 's/"events":3/"events":2/' manifest.json`), false},
	} {
		t.Run(c.format+" "+c.name, func(t *testing.T) {
			r := *r
			r.t = t
			dest := filepath.Join(t.TempDir(), "out")
			_, err := r.Export(t.Context(), from.Tenant, c.format, dest)
			r.no(err)
			c.do(t, dest)
			to := core.Caller{Tenant: "t_" + strings.ReplaceAll(c.format+"-"+c.name, " ", "-"), Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
			r.no(r.db.CreateTenant(t.Context(), to.Tenant))
			_, err = r.Import(t.Context(), to, c.format, dest)
			if core.AsError(err).Code != core.InvalidInput {
				t.Fatalf("%v", err)
			}
			if c.names && !strings.Contains(err.Error(), last.EventID) {
				t.Errorf("the event %s is not named: %v", last.EventID, err)
			}
			if f, err := r.Figures(t.Context(), to.Tenant); err != nil || f.Events != 0 {
				t.Errorf("%d events were taken in: %v", f.Events, err)
			}
		})
	}
}
