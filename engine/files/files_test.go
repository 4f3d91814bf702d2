package files_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/safeopen"
	"swarmdeck/expect"
	"swarmdeck/store"
)

const acme = "t_acme"

var alice = core.Caller{Tenant: acme, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}

func open(t *testing.T, path string) *engine.Engine {
	t.Helper()
	db := expect.Of(store.Open(path, store.Options{}))(t)
	own := expect.Of(safeopen.OwnFiles(path))(t)
	e := expect.Of(engine.Open(t.Context(), engine.Options{Store: db, Own: own}))(t)
	t.Cleanup(func() {
		_ = e.Close()
		_ = db.Close()
	})
	return e
}

func put(t *testing.T, e *engine.Engine, effect files.Effect, path, role, agent string) string {
	t.Helper()
	r := expect.Of(files.NewRule(effect, path))(t)
	r.Role, r.Agent = role, agent
	_, action, err := e.Files.Put(t.Context(), alice, r)
	expect.No(t, err)
	return action
}

func TestRulesAreMergedAndTheStrictestWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	t.Run("one engine", func(t *testing.T) {
		e := open(t, path)
		expect.Of(e.Swarm.CreateTenant(t.Context(), alice, acme))(t)
		put(t, e, files.Read, "/data/all", "", "")
		put(t, e, files.Read, "/data/x", "", "")
		put(t, e, files.Write, "/data/x", "coder", "")
		put(t, e, files.Hide, "/data/x", "", "ada")
		put(t, e, files.Write, "/data/y", "tester", "")
		expect.Is(t, put(t, e, files.Write, "/data/y", "tester", ""), "unchanged", "the same again")
		expect.Is(t, put(t, e, files.Hide, "/data/y", "tester", ""), "changed", "another effect")
	})
	e := open(t, path) // the next engine has them too
	for _, c := range []struct {
		tenant, role, agent string
		want                files.Places
	}{
		{acme, "", "", files.Places{Read: []string{"/data/all", "/data/x"}}},
		{acme, "coder", "eve", files.Places{Read: []string{"/data/all"}, Write: []string{"/data/x"}}},
		{acme, "coder", "ada", files.Places{Read: []string{"/data/all"}, Hide: []string{"/data/x"}}},
		{acme, "tester", "", files.Places{Read: []string{"/data/all", "/data/x"}, Hide: []string{"/data/y"}}},
		{"t_other", "coder", "ada", files.Places{}},
	} {
		got := e.Files.Places(c.tenant, c.role, c.agent)
		expect.True(t, reflect.DeepEqual(got, c.want), "%s %q %q: %+v, want %+v", c.tenant, c.role, c.agent, got, c.want)
	}
	r := files.Rule{Path: "/data/x", Agent: "ada"}
	expect.Of(e.Files.Remove(t.Context(), alice, r.ID()))(t)
	got := e.Files.Places(acme, "coder", "ada")
	expect.True(t, len(got.Hide) == 0 && len(got.Write) == 1, "without the rule for ada: %+v", got)
	deltas, err := e.Reconcile(t.Context(), acme)
	expect.True(t, err == nil && len(deltas) == 0, "reconcile: %v %v", deltas, err)
}

func TestRulesThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	e := open(t, path)
	_, err := e.Swarm.CreateTenant(t.Context(), alice, acme)
	expect.No(t, err)
	for _, where := range []string{"", "/", "x", "./x", "//", "/a/../..", "/a\x00b", "~bob/x", "/" + strings.Repeat("x", 3000)} {
		r, err := files.NewRule(files.Read, where)
		expect.True(t, err != nil, "%q: %+v", where, r)
	}
	for _, r := range []files.Rule{
		{Effect: files.Read, Path: "/a/../b"},
		{Effect: "have", Path: "/a"},
		{Effect: files.Read, Path: "/a", Role: "x", Agent: "y"},
		{Effect: files.Read, Path: "/a", Role: "x\ny"},
		{Effect: files.Read, Path: "/\xff"},
	} {
		_, _, err = e.Files.Put(t.Context(), alice, r)
		expect.Err(t, err, core.Kind(core.InvalidInput), r)
	}
	for _, own := range []string{path, path + ".key", path + ".run/agents/t_acme/ada/home"} {
		_, _, err = e.Files.Put(t.Context(), alice, files.Rule{Effect: files.Read, Path: own})
		expect.Err(t, err, core.Kind(core.Denied), own)
	}
	ada := core.Caller{Tenant: acme, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	_, _, err = e.Files.Put(t.Context(), ada, files.Rule{Effect: files.Read, Path: "/a"})
	expect.Err(t, err, core.Kind(core.Denied), "an agent")
	expect.Err(t, expect.Fault(e.Files.Remove(t.Context(), ada, "/a")), core.Kind(core.Denied), "an agent")
	log, err := e.Audit.List(context.Background(), acme, core.Filter{Kind: "files.rule.refused", Size: 100})
	expect.True(t, err == nil && len(log.Items) == 5, "%d refusals in the log, %v", len(log.Items), err)
}

func TestARoleThatLooksLikeAPathIsAnotherRule(t *testing.T) {
	a, b := files.Rule{Role: "x /a", Path: "/b"}, files.Rule{Role: "x", Path: "/a /b"}
	if a.ID() == b.ID() {
		t.Errorf("both are %q", a.ID())
	}
}
