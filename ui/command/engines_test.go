package command_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/cluster"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// twoEngines are those of the tests, one of which stands still.
func twoEngines(context.Context) (cluster.Cluster, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return cluster.Cluster{
		Engines: []cluster.Engine{
			{Name: "deck1-AAAA", Host: "deck1", Version: "1.0", Address: "deck1:2222", State: cluster.Up, Here: true, Since: at, Seen: at, Silent: 400, Count: 2, Tenants: []string{"t_aa", "t_bb"}},
			{Name: "deck2-BBBB", Host: "deck2", Version: "1.0", State: cluster.Late, Since: at, Seen: at, Silent: 3100, Count: 1, Tenants: []string{"t_cc"}},
		},
		Free: []string{"t_dd"},
	}, nil
}

func (w *walk) engines() {
	w.t.Helper()
	w.do("engine list")
	w.text("engine list", "deck1-AAAA", "up", "yes", "t_aa,t_bb", "deck1:2222", "late", "3.1s", "t_cc")
	w.text("engine list --status late", "deck2-BBBB")
	e := w.do("engine show deck2-BBBB")
	expect.True(w.t, e["silent_ms"] == 3100.0 && e["here"] == false && e["tenant_count"] == 1.0 && fmt.Sprint(e["tenants"]) == "[t_cc]", "%v", e)
	w.fails(2, "engine list --status dead")
	code, _, _ := w.fails(1, "engine show deck3")
	expect.True(w.t, code == "NOT_FOUND", "%v", code)
}

func TestWhoIsElsewhereSeesTheOwnTenantAlone(t *testing.T) {
	d := newDeck(t)
	d.line("tenant create t_bb")
	env := d.env
	env.Remote, env.Caller = true, core.Caller{Kind: core.Operator, Door: core.DoorSSH, Name: "ann", Tenant: "t_bb"}
	code, out, errs := d.runIn(t.Context(), env, "-o", "wide", "engine", "list")
	expect.Must(t, code == 0 && strings.Contains(out, "t_bb") && strings.Contains(out, "deck2-BBBB"), "exit %d\n%s%s", code, out, errs)
	_, text, _ := d.runIn(t.Context(), env, "-o", "json", "engine", "list")
	for _, foreign := range []string{"t_aa", "t_cc", "t_dd"} {
		expect.True(t, !strings.Contains(out+text+errs, foreign), "%s is named:\n%s%s%s", foreign, out, text, errs)
	}
	_, _, errs = d.run("engine", "list")
	expect.Has(t, errs, "no engine has t_dd", "who is at the machine is not told of what no engine has")
}
