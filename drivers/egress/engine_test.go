package egress_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/store"
)

func TestAgentsConnectByRuleOrByAPersonsWord(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "data.db"), store.Options{})
	no := func(err error) {
		t.Helper()
		expect.No(t, err)
	}
	no(err)
	defer db.Close()
	eng, err := engine.Open(t.Context(), engine.Options{Store: db})
	no(err)
	alice := core.Caller{Tenant: ada.Tenant, Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	_, err = eng.Swarm.CreateTenant(t.Context(), alice, ada.Tenant)
	no(err)
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	t.Cleanup(server.Close)
	digits := port(server.Listener.Addr().String())
	w := newWorld(t, eng.Egress, nil)
	for _, host := range []string{"example.com", "www.example.com"} {
		w.names.of[host] = []string{"127.0.0.1"}
	}
	allow := func(where string, private bool) {
		t.Helper()
		r, err := egress.NewRule(egress.Allow, where)
		no(err)
		r.Private = r.Private || private
		_, _, err = eng.Egress.Put(t.Context(), alice, r, 0)
		no(err)
	}
	log := func(kind string) string {
		t.Helper()
		page, err := eng.Audit.List(t.Context(), ada.Tenant, core.Filter{Kind: kind})
		no(err)
		var all []string
		for _, e := range page.Items {
			all = append(all, string(e.Payload))
		}
		return strings.Join(all, "\n")
	}

	// A rule lets it through without a question.
	allow("example.com:"+digits, true)
	client := w.client("socks5h", server)
	status, body, err := get(client, "https://example.com:"+digits+"/x")
	expect.Must(t, err == nil && status == 200 && strings.HasPrefix(body, "GET example.com:"+digits+" /x"), "%d %q %v", status, body, err)
	open, err := eng.Judge.Open(t.Context(), ada.Tenant)
	expect.True(t, err == nil && len(open) == 0, "%v %v", open, err)

	// A person's yes lets a name through, and opens no private address.
	bell := eng.Watch(t.Context())
	answered := expect.Later(func() error { return answer(eng, bell, alice) })
	_, _, err = get(w.client("http", server), "https://www.example.com:"+digits+"/")
	no(<-answered)
	expect.Says(t, err, "127.0.0.1 is loopback, which a rule with --private must allow")
	said := log("egress.allowed")
	expect.True(t, strings.Contains(said, `"host":"www.example.com"`) && strings.Contains(said, `"process":"curl"`), "%v", said)
	expect.Has(t, log("egress.refused"), `"code":"address"`)

	// What a person denies is refused, with the reason.
	r, err := egress.NewRule(egress.Deny, "*.example.com")
	no(err)
	_, _, err = eng.Egress.Put(t.Context(), alice, r, time.Hour)
	no(err)
	_, _, err = get(w.client("http", server), "https://www.example.com:"+digits+"/")
	expect.Says(t, err, "egress rule *.example.com denies it")

	// Once all is closed in order, the sums are in the log.
	no(w.proxy.Close())
	no(eng.Close())
	if said := log("egress.used"); !strings.Contains(said, `"host":"example.com"`) || !strings.Contains(said, `"connections":1`) || !strings.Contains(said, `"refused":2`) {
		t.Error(said)
	}
}

// answer approves the one question that comes.
func answer(eng *engine.Engine, bell <-chan struct{}, by core.Caller) error {
	for {
		open, err := eng.Judge.Open(context.Background(), by.Tenant)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			_, err := eng.Judge.Answer(context.Background(), by, open[0].ApprovalID, judge.Answer{Approve: true})
			return err
		}
		<-bell
	}
}
