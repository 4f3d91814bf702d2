package engine

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/files"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// atOnce is a runner whose work is done as it starts, or panics.
type atOnce struct{ swarm.Work }

func (atOnce) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "test", judge.Action{Kind: "test.run", Args: input}, nil
}

func (atOnce) Slot(string, string) (bool, string) { return true, "" }

func (atOnce) Start(_ context.Context, job swarm.Job) (swarm.Work, error) {
	if strings.Contains(string(job.Task.Input), "panic") {
		panic("boom")
	}
	return atOnce{}, nil
}

func (atOnce) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (atOnce) Outcome() task.Outcome { return task.Outcome{Status: task.Succeeded} }

const approveAll = `
schema: 1
name: test
rules:
  - {id: ok, gates: [task.start, result], when: 'true', decision: approve, reason_code: test.ok, risk: low}
`

// life is a data file with engines one after the other.
type life struct {
	t    *testing.T
	path string
	db   *store.DB
	*Engine
	stop func()
}

func newLife(t *testing.T) *life {
	l := &life{t: t, path: filepath.Join(t.TempDir(), "test.db")}
	t.Cleanup(l.end)
	l.begin()
	return l
}

func (l *life) begin() {
	l.t.Helper()
	sealer, err := audit.OpenSealer(l.path + ".key")
	expect.No(l.t, err)
	l.db = expect.Of(store.Open(l.path, store.Options{Seal: sealer.Seal}))(l.t)
	l.Engine, err = Open(l.t.Context(), Options{
		Store: l.db, Sealer: sealer, Policy: []byte(approveAll), Runners: map[string]swarm.Runner{"test.run": atOnce{}},
	})
	expect.No(l.t, err)
}

func (l *life) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := expect.Later(func() error { return l.Run(ctx) })
	l.stop = func() {
		cancel()
		expect.Is(l.t, <-done, nil, "Run")
	}
}

func (l *life) end() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	if l.db != nil {
		expect.No(l.t, errors.Join(l.Close(), l.db.Close()))
		l.db = nil
	}
}

// edit changes the one record whose value holds a text, as whoever has the file
// can: with the right checksum.
func (l *life) edit(tenant string, b store.Bucket, holds string, to func([]byte) []byte) {
	l.t.Helper()
	edited := 0
	err := l.db.Update(l.t.Context(), tenant, func(tx store.Tx) error {
		var key, value []byte
		err := tx.Scan(b, nil, nil, false, func(k, v []byte) (bool, error) {
			if bytes.Contains(v, []byte(holds)) {
				key, value, edited = bytes.Clone(k), bytes.Clone(v), edited+1
			}
			return true, nil
		})
		if err != nil || key == nil {
			return err
		}
		return tx.Put(b, key, to(value))
	})
	expect.Must(l.t, err == nil && edited == 1, "edited %d records of %s: %v", edited, b, err)
}

func (l *life) dispatch(tenant, session, input string) string {
	l.t.Helper()
	by := alice
	by.Tenant = tenant
	task := expect.Of(l.Swarm.Dispatch(l.t.Context(), by, swarm.Dispatch{Kind: "test.run", Session: session, Input: core.Raw(input)}))(l.t)
	return task.TaskID
}

func (l *life) session(tenant, name string) string {
	l.t.Helper()
	by := alice
	by.Tenant = tenant
	ses, err := l.Swarm.Sessions.Create(l.t.Context(), by, name)
	if err == nil {
		_, err = l.Swarm.Sessions.Start(l.t.Context(), by, ses.SessionID)
	}
	expect.No(l.t, err)
	return ses.SessionID
}

func (l *life) ends(tenant, tk string, want task.Status) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	if got, err := l.Tasks.Wait(ctx, tenant, tk, want); err != nil || got.Status != want {
		l.t.Fatalf("task of %s: %s (%v), want %s; troubles: %v", tenant, got.Status, err, want, l.Health.All())
	}
}

func (l *life) named(tenant string) (about []string) {
	for _, one := range l.Health.Of(tenant) {
		about = append(about, one.About)
	}
	return about
}

func TestWrongRecordsOfOneTenantStopNothingElse(t *testing.T) {
	l := newLife(t)
	for _, tenant := range []string{"t_bad", "t_good"} {
		expect.Of(l.Swarm.CreateTenant(t.Context(), alice, tenant))(t)
	}
	broken, whole := l.session("t_bad", "broken"), l.session("t_bad", "whole")
	held := l.dispatch("t_bad", broken, `{}`)
	leaseless := l.dispatch("t_bad", "", `{"is":"leaseless"}`)
	unknown := l.dispatch("t_bad", whole, `{"is":"unknown"}`)
	garbled := l.dispatch("t_bad", whole, `{"is":"garbled"}`)
	runs, inSession := l.dispatch("t_bad", "", `{}`), l.dispatch("t_bad", whole, `{}`)
	other := l.dispatch("t_good", "", `{}`)

	l.edit("t_bad", "session", broken, func([]byte) []byte { return []byte(`{"session_id":`) })
	status := func(to string) func([]byte) []byte {
		return func(v []byte) []byte {
			return bytes.Replace(v, []byte(`"status":"queued"`), []byte(`"status":"`+to+`"`), 1)
		}
	}
	l.edit("t_bad", "task", leaseless, status("running"))
	l.edit("t_bad", "task", unknown, status("dancing"))
	l.edit("t_bad", "task", garbled, func([]byte) []byte { return []byte("\x1b[2J") })
	l.end()
	l.begin()
	l.run()

	l.ends("t_good", other, task.Succeeded)
	l.ends("t_bad", runs, task.Succeeded)
	l.ends("t_bad", inSession, task.Succeeded)
	expect.No(t, l.Inspect(t.Context()))
	got := l.named("t_bad")
	for _, want := range []string{"session " + broken, "task " + leaseless, "task " + unknown, "task " + garbled} {
		expect.True(t, slices.Contains(got, want), "troubles of t_bad are %q, want %q too", got, want)
	}
	got = l.named("t_good")
	expect.True(t, len(got) == 0, "troubles of t_good: %q", got)
	if got := l.Snapshot("t_bad"); len(got.Troubles) != 4 || got.Err != nil {
		t.Errorf("snapshot: %v, %v", got.Troubles, got.Err)
	}
	tk, err := l.Tasks.Get(t.Context(), "t_bad", held)
	expect.True(t, err == nil && tk.Status == task.Queued, "a task of the session that can't be read is %s (%v), want queued", tk.Status, err)
	// What comes later finds its way too.
	l.ends("t_bad", l.dispatch("t_bad", whole, `{}`), task.Succeeded)
	expect.Is(t, len(expect.Of(l.Tasks.List(t.Context(), "t_bad", core.Filter{Size: 50}))(t).Items), 4, "list of the tasks that can be read")
}

func TestARunningTaskThatCantBeReadIsNamedAtTheStart(t *testing.T) {
	l := newLife(t)
	expect.Of(l.Swarm.CreateTenant(t.Context(), alice, "t_bad"))(t)
	by := alice
	by.Tenant = "t_bad"
	first, second := l.dispatch("t_bad", "", `{}`), l.dispatch("t_bad", "", `{}`)
	got, err := l.Swarm.Claim(t.Context(), by, "w", 2)
	expect.Must(t, err == nil && len(got) == 2, "claimed %d: %v", len(got), err)
	l.edit("t_bad", "task", first, func(v []byte) []byte { return bytes.Replace(v, []byte(`"attempt":0`), []byte(`"attempt":"x"`), 1) })
	l.end()
	l.begin()
	l.run()
	l.ends("t_bad", second, task.Succeeded)
	if got := l.named("t_bad"); !slices.Contains(got, "task "+first) {
		t.Errorf("troubles: %q, want task %s", got, first)
	}
}

func TestWhatCantBeReadHoldsBackWhatItMayHave(t *testing.T) {
	l := newLife(t)
	by := alice
	for _, tenant := range []string{"t_stop", "t_budget"} {
		by.Tenant = tenant
		expect.Of(l.Swarm.CreateTenant(t.Context(), by, tenant))(t)
	}
	by.Tenant = "t_stop"
	expect.Of(l.Swarm.EStops.Press(t.Context(), by, "test"))(t)
	by.Tenant = "t_budget"
	expect.Of(l.Swarm.Budgets.Set(t.Context(), by, budget.Budget{Subject: "tenant", Tokens: 1}))(t)
	held := map[string]string{"t_stop": l.dispatch("t_stop", "", `{}`), "t_budget": l.dispatch("t_budget", "", `{}`)}
	l.edit("t_stop", "estop", "test", func([]byte) []byte { return []byte(`[]`) })
	l.edit("t_budget", "budget", "tokens", func([]byte) []byte { return []byte(`[]`) })
	l.end()
	l.begin()
	for tenant, task := range held {
		by.Tenant = tenant
		got, err := l.Swarm.Claim(t.Context(), by, "w", 1)
		expect.True(t, err == nil && len(got) == 0, "%s: task %s was claimed: %v", tenant, task, err)
		expect.True(t, len(l.Health.Of(tenant)) != 0, "%s is not degraded", tenant)
	}
}

func TestRulesThatCantBeReadRefuse(t *testing.T) {
	l := newLife(t)
	if _, err := l.Swarm.CreateTenant(t.Context(), alice, "t_acme"); err != nil {
		t.Fatal(err)
	}
	hidden := "/srv/some where"
	_, _, err := l.Files.Put(t.Context(), alice, files.Rule{Path: hidden, Agent: "ada", Effect: files.Read})
	expect.No(t, err)
	rule := expect.Of(egress.NewRule(egress.Allow, "example.com:443"))(t)
	_, _, err = l.Egress.Put(t.Context(), alice, rule, 0)
	expect.No(t, err)
	garble := func([]byte) []byte { return []byte("{") }
	l.edit("t_acme", "files.rule", hidden, garble)
	l.edit("t_acme", "egress.rule", "example.com", garble)
	l.end()
	l.begin()
	got := l.Files.Places("t_acme", "", "ada")
	expect.True(t, slices.Equal(got.Hide, []string{hidden}) && len(l.Files.Places("t_acme", "", "bob").Hide) == 0, "places of ada: %+v", got)
	to := expect.Of(egress.NewTarget("example.com", 443))(t)
	denied, _ := l.Egress.Denied(egress.Origin{Tenant: "t_acme", Agent: "ada"}, egress.Request{Target: to})
	expect.True(t, denied, "a connection by a rule that can't be read is not refused")
	if got := l.named("t_acme"); len(got) != 2 {
		t.Errorf("troubles: %q", got)
	}
}

func TestARunnerThatPanicsFailsItsTaskWithTheStack(t *testing.T) {
	l := newLife(t)
	expect.Of(l.Swarm.CreateTenant(t.Context(), alice, "t_acme"))(t)
	l.run()
	tk := l.dispatch("t_acme", "", `{"do":"panic"}`)
	l.ends("t_acme", tk, task.Failed)
	res, err := l.Tasks.Result(t.Context(), "t_acme", tk)
	expect.Must(t, err == nil && res.Error != nil && res.Error.Code == "runner_panic" && strings.Contains(string(res.Error.Details), "health_test.go"),
		"result: %+v, %v", res.Error, err)
	l.ends("t_acme", l.dispatch("t_acme", "", `{}`), task.Succeeded)
}
