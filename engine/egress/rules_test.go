package egress_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/egress"
	"swarmdeck/expect"
)

func TestAHostIsWrittenInOneWay(t *testing.T) {
	for given, want := range map[string]string{
		"Example.COM": "example.com", "example.com.": "", "a_b.example": "a_b.example", "localhost": "localhost",
		"127.0.0.1": "127.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "[::1]": "::1", "2001:DB8::1": "2001:db8::1",
		"": "", ".": "", "a..b": "", "-a.example": "", "a-.example": "", "exa mple": "", "exämple": "", "a/b": "", "a@b": "", "a\x00b": "",
		"0x7f.1": "", "127.1": "", "2130706433": "", "fe80::1%eth0": "", "[::1": "", strings.Repeat("a", 64) + ".example": "", strings.Repeat("a.", 127) + "aa": "",
	} {
		to, err := egress.NewTarget(given, 443)
		if to.Host != want && !(given == "example.com." && to.Host == "example.com") || want == "" && given != "example.com." && !errors.Is(err, core.Kind(core.InvalidInput)) {
			t.Errorf("%q is %q, %v; want %q", given, to.Host, err, want)
		}
	}
	expect.Fails(t, expect.Fault(egress.NewTarget("example.com", 0)), "a target has a port")
}

func TestPatternsOfRules(t *testing.T) {
	for given, want := range map[string]string{
		"Example.com": "example.com", "example.com:443": "example.com:443", "*.example.com": "*.example.com", "*.example.com:80": "*.example.com:80",
		"10.0.0.1:80": "10.0.0.1:80", "[::1]:80": "[::1]:80", "::1": "[::1]", "npm": "npm", "registries": "registries",
		"*": "", "*.com": "", "*.10.0.0.1": "", "a.*.com": "", "*example.com": "", "example.com:": "", "example.com:0": "", "example.com:65536": "", "https://example.com": "", "": "", ":443": "",
	} {
		r, err := egress.NewRule(egress.Allow, given)
		expect.Is(t, map[bool]string{true: r.Where()}[err == nil], want, given, "is", err)
	}
}

func TestAPresetIsForTheAgentsOfAProject(t *testing.T) {
	w := work(t, "")
	w.put(egress.Allow, "npm", func(r *egress.Rule) { r.Project = "site" })
	both := shared
	for _, from := range []egress.Origin{ada, both} {
		v := <-w.asks(from, "registry.npmjs.org", 443)
		expect.True(t, v.Allowed && !v.Asked, "%+v: %+v", from, v)
	}
	both.Agents = func() []string { return []string{"ada", "nobody"} }
	w.denies(both, "registry.npmjs.org")
	w.put(egress.Allow, "github-read")
	read := egress.Request{Target: target(t, "github.com", 443), Method: "GET", Path: "/acme/web"}
	v := w.Egress.Decide(t.Context(), ada, read)
	expect.True(t, v.Allowed, "%+v", v)
	w.denies(ada, "github.com") // in a whole connection it could push
}

func FuzzNewRule(f *testing.F) {
	for _, s := range []string{"example.com:443", "*.example.com", "[::1]:80", "::ffff:127.0.0.1", "0x7f.1", "github-read"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := egress.NewRule(egress.Deny, text)
		if err != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Errorf("%q made %q, which is refused: %v", text, r.Where(), err)
		}
		again, err := egress.NewRule(egress.Deny, r.Where())
		if err != nil || again.ID() != r.ID() {
			t.Errorf("%q became %q, then %q: %v", text, r.ID(), again.ID(), err)
		}
	})
}

func TestClosedAddressesInEveryForm(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1": "loopback", "127.9.9.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "64:ff9b::7f00:1": "loopback", "2002:7f00:1::": "loopback",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"10.1.2.3": "private", "172.31.0.1": "private", "192.168.1.1": "private", "fd12::1": "private", "fec0::1": "private", "64:ff9b::a01:203": "private", "2002:c0a8:101::1": "private",
		"2606:4700::5efe:a01:203": "private", "2606:4700::200:5efe:c0a8:101": "private",
		"100.64.0.1": "shared by a carrier (CGNAT)", "224.0.0.1": "multicast", "ff02::1": "multicast", "0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"169.254.169.254": "the cloud's metadata service", "::ffff:169.254.169.254": "the cloud's metadata service", "64:ff9b::a9fe:a9fe": "the cloud's metadata service", "fd00:ec2::254": "the cloud's metadata service", "100.100.100.200": "the cloud's metadata service",
		"::7f00:1": "reserved", "64:ff9b:1::7f00:1": "reserved", "2001:0:a01:203::1": "reserved", "192.88.99.1": "reserved", "255.255.255.255": "reserved", "198.18.0.1": "reserved",
		"8.8.8.8": "", "1.1.1.1": "", "172.32.0.1": "", "2606:4700::1": "", "64:ff9b::808:808": "", "2002:808:808::1": "",
	} {
		expect.Is(t, egress.Closed(netip.MustParseAddr(text)), want, text, "is")
	}
	expect.True(t, egress.Closed(netip.Addr{}) != "", "no address at all is let through")
}

func TestRulesDecideWithoutAPerson(t *testing.T) {
	w := open(t, "", time.Nanosecond)
	w.put(egress.Allow, "example.com:443")
	w.put(egress.Allow, "*.example.org")
	w.put(egress.Deny, "bad.example.org")
	w.put(egress.Allow, "role.example", func(r *egress.Rule) { r.Role = "coder" })
	w.put(egress.Allow, "agent.example", func(r *egress.Rule) { r.Agent = "eve" })
	w.put(egress.Allow, "127.0.0.1:8080")
	w.put(egress.Allow, "pypi")
	w.put(egress.Allow, "inside.example", func(r *egress.Rule) { r.Private = true })
	for where, want := range map[string]struct {
		port             int
		allowed, private bool
	}{
		"example.com": {443, true, false}, "sub.example.com": {443, false, false}, "example.org": {443, false, false},
		"a.example.org": {22, true, false}, "a.b.example.org": {443, true, false}, "bad.example.org": {443, false, false}, "notexample.org": {443, false, false},
		"role.example": {1, true, false}, "agent.example": {1, false, false}, "127.0.0.1": {8080, true, true}, "pypi.org": {443, true, false},
		"inside.example": {80, true, true}, "localhost": {80, false, false}, "169.254.169.254": {80, false, false}, "::1": {8080, false, false},
	} {
		v := w.Egress.Decide(t.Context(), ada, whole(target(t, where, want.port)))
		expect.True(t, v.Allowed == want.allowed && v.Private == want.private && v.Allowed != (v.Reason != ""), "%s: %+v", where, v)
	}
	expect.True(t, !w.Egress.Decide(t.Context(), ada, whole(target(t, "example.com", 80))).Allowed, "another port is another matter")
	other := ada
	other.Tenant = "t_none"
	expect.True(t, !w.Egress.Decide(t.Context(), other, whole(target(t, "example.com", 443))).Allowed, "a rule holds in its tenant only")
}

func TestADenyEndsWhatIsOpenAndARuleEndsByItself(t *testing.T) {
	w := open(t, "", time.Nanosecond)
	r, err := egress.NewRule(egress.Allow, "api.example")
	w.no(err)
	r, _, err = w.Egress.Put(t.Context(), alice, r, time.Hour)
	expect.Must(t, err == nil && r.ExpiresAt.After(w.clock.Now()), "%+v %v", r, err)
	to := target(t, "api.example", 443)
	denied, changed := w.Egress.Denied(ada, whole(to))
	expect.True(t, !denied && w.Egress.Decide(t.Context(), ada, whole(to)).Allowed, "it is allowed")
	w.put(egress.Deny, "*.example.com")
	<-changed
	denied, _ = w.Egress.Denied(ada, whole(to))
	expect.True(t, !denied, "another host was denied")
	w.clock.add(2 * time.Hour)
	expect.True(t, !w.Egress.Decide(t.Context(), ada, whole(to)).Allowed, "the rule has expired")
	w.put(egress.Deny, "api.example")
	denied, _ = w.Egress.Denied(ada, whole(to))
	expect.True(t, denied, "it is denied")
	v := w.Egress.Decide(t.Context(), ada, whole(to))
	expect.True(t, !v.Allowed && strings.Contains(v.Reason, "egress rule api.example denies it"), "%+v", v)
}

func TestRulesAreKeptAndReconcile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	func() {
		w := open(t, path, 0)
		w.put(egress.Allow, "a.example")
		w.put(egress.Deny, "b.example:22", func(r *egress.Rule) { r.Role = "coder" })
		w.put(egress.Allow, "c.example")
		expect.Of(w.Egress.Remove(t.Context(), alice, "c.example"))(w.t)
		_, action, err := w.Egress.Put(t.Context(), alice, w.put(egress.Allow, "a.example"), 0)
		expect.True(t, err == nil && action == "unchanged", "%s %v", action, err)
		deltas, err := w.Reconcile(t.Context(), acme)
		expect.True(t, err == nil && len(deltas) == 0, "%v %v", deltas, err)
		w.no(w.Close())
		w.no(w.Store().Close())
	}()
	w := open(t, path, time.Nanosecond)
	all, err := w.Egress.Rules(t.Context(), acme)
	expect.True(t, err == nil && len(all) == 2 && all[1].ID() == "b.example:22 role coder", "%+v %v", all, err)
	if !w.Egress.Decide(t.Context(), ada, whole(target(t, "a.example", 1))).Allowed || w.Egress.Decide(t.Context(), ada, whole(target(t, "b.example", 22))).Allowed {
		t.Error("the rules are forgotten")
	}
}

func TestOnlyAPersonChangesRules(t *testing.T) {
	w := open(t, "", 0)
	by := core.Caller{Tenant: acme, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	r, err := egress.NewRule(egress.Allow, "a.example")
	w.no(err)
	_, _, err = w.Egress.Put(t.Context(), by, r, 0)
	expect.Err(t, err, core.Kind(core.Denied))
	expect.Err(t, expect.Fault(w.Egress.Remove(t.Context(), by, "a.example")), core.Kind(core.Denied))
	got := w.log("egress.rule.refused")
	expect.True(t, len(got) == 2 && got[0].Actor == "ada", "%v", got)
}

func BenchmarkDecideByRule(b *testing.B) {
	w := open(b, "", 0)
	for _, r := range []string{"a.example", "*.b.example", "c.example:443", "pypi"} {
		w.put(egress.Allow, r)
	}
	to := target(b, "deep.down.b.example", 443)
	ctx := context.Background()
	for b.Loop() {
		if !w.Egress.Decide(ctx, ada, whole(to)).Allowed {
			b.Fatal("refused")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/decision")
}
