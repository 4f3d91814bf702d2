package egress_test

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/egress"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

func request(t testing.TB, method, path, query string) egress.Request {
	t.Helper()
	return expect.Of(egress.NewRequest(target(t, "api.example", 443), method, path, query))(t)
}

func TestARequestIsWrittenInOneWay(t *testing.T) {
	for _, c := range []struct{ method, path, query, want string }{
		{"GET", "/a/b", "x=1", "GET /a/b"},
		{"GET", "/%61%2Db/%c3%a4%20", "", "GET /a-b/%C3%A4%20"},
		{"GET", "/@scope%2fname", "", "GET /@scope%2Fname"},
		{"GET", "/100%25", "", "GET /100%25"},
		{"OPTIONS", "*", "", "OPTIONS *"},
		{"GET", "/a/r.git/info/refs", "service=git-upload-pack", "git-upload-pack /a/r.git"},
		{"GET", "/a/r.git/info/refs", "service=git-receive-pack", "git-receive-pack /a/r.git"},
		{"GET", "/a/r.git/info/refs", "%73ervice=git-receive-pack", "git-receive-pack /a/r.git"},
		{"GET", "/a/r.git/info/refs", "service=git-upload-pack&service=git-receive-pack", "git-receive-pack /a/r.git"},
		{"GET", "/a/r.git/info/refs", "a;service=git-receive-pack", "git-receive-pack /a/r.git"},
		{"GET", "/a/r.git/info/refs", "", "GET /a/r.git/info/refs"},
		{"GET", "/x", "service=git-receive-pack", "GET /x"},
		{"POST", "/a/r.git/git-upload-pack", "", "git-upload-pack /a/r.git"},
		{"POST", "/a/r.git/git-receive-pack", "", "git-receive-pack /a/r.git"},
		{"PUT", "/a/r.git%2fGit-Receive-Pack/", "", "git-receive-pack /a/r.git"},
		{"PUT", "/a/r.git/git-upload-pack", "", "PUT /a/r.git/git-upload-pack"},
		{"POST", "/git-receive-pack", "", "git-receive-pack /"},
		{"GET", "/v1/ghp_abcdefghijklmnopqrstuvwx/me", "", "GET /v1/…/me"},
	} {
		r := request(t, c.method, c.path, c.query)
		expect.Is(t, r.Method+" "+r.Shown(), c.want, c.method, c.path, "?", c.query, "is")
	}
	for _, method := range []string{"", "get", "CONNECT", "G ET", strings.Repeat("X", 33)} {
		expect.Fails(t, expect.Fault(egress.NewRequest(target(t, "api.example", 443), method, "/", "")), "method", method)
	}
	expect.Fails(t, expect.Fault(egress.NewRequest(target(t, "api.example", 443), "GET", "/"+strings.Repeat("\x01", 2000), "")), "a path has a bound")
	long := request(t, "GET", "/"+strings.Repeat("a", 3000), "").Shown()
	expect.True(t, len(long) <= 700 && long != request(t, "GET", "/"+strings.Repeat("a", 3001), "").Shown(), "%v", long)
}

// narrow makes a rule about some requests.
func (w *world) narrow(effect egress.Effect, where, methods, path string) egress.Rule {
	w.t.Helper()
	return w.put(effect, where, func(r *egress.Rule) {
		w.no(r.Narrow(strings.FieldsFunc(methods, func(c rune) bool { return c == ',' }), path))
	})
}

func TestRulesAboutRequests(t *testing.T) {
	w := open(t, "", time.Nanosecond)
	w.narrow(egress.Allow, "api.example", "GET,HEAD", "")
	w.narrow(egress.Allow, "api.example", "POST", "/v1/*")
	w.narrow(egress.Allow, "api.example", "", "/free")
	w.narrow(egress.Allow, "api.example", "PUT", "/@scope%2F*")
	w.narrow(egress.Deny, "api.example", "", "/v1/admin/*")
	w.narrow(egress.Deny, "api.example", egress.ReceivePack, "")
	for _, c := range []struct {
		method, path, query string
		want                bool
	}{
		{"GET", "/anything", "", true},
		{"HEAD", "/", "", true},
		{"PUT", "/anything", "", false},
		{"POST", "/v1/x", "", true},
		{"POST", "/v1/", "", true},
		{"POST", "/v1", "", false},
		{"POST", "/v2/x", "", false},
		{"POST", "/v1%2Fx", "", false}, // a server may see it beside /v1
		{"POST", "/v1/a%2Fb", "", true},
		{"DELETE", "/free", "", true},
		{"PUT", "/@scope%2fname", "", true},
		{"PUT", "/@scope/name", "", false},
		{"DELETE", "/free/x", "", false},
		// What can be read in several ways is within no rule that allows, and in each that denies.
		{"POST", "/v1/../v2/x", "", false},
		{"POST", "/v1/%2e%2e/x", "", false},
		{"POST", "/v1/..%2fx", "", false},
		{"POST", "/v1/..;/x", "", false},
		{"POST", "/v1/%252e%252e/x", "", false},
		{"POST", "/v1/\\x", "", false},
		{"GET", "/v1/admin/users", "", false},
		{"GET", "/v1%2fadmin/users", "", false},
		{"GET", "//v1/admin/users", "", false},
		{"GET", "/v1/./admin/users", "", false},
		{"GET", "/v1/%61dmin/users", "", false},
		{"GET", "/v1/admin", "", true},
		{"GET", "/r.git/info/refs", "service=git-receive-pack", false},
	} {
		v := w.Egress.Decide(t.Context(), ada, request(t, c.method, c.path, c.query))
		expect.True(t, v.Allowed == c.want && !v.Asked, "%s %s: %+v", c.method, c.path, v)
	}
	// A connection that nobody looks into may hold what is denied.
	v := w.Egress.Decide(t.Context(), ada, whole(target(t, "api.example", 443)))
	expect.True(t, !v.Allowed && strings.Contains(v.Reason, "denies a part of it"), "%+v", v)
	w.narrow(egress.Allow, "read.example", "GET", "")
	v = w.Egress.Decide(t.Context(), ada, whole(target(t, "read.example", 443)))
	expect.True(t, !v.Allowed, "a rule about requests does not allow a connection in which anything may be said")
	w.put(egress.Allow, "all.example")
	all := expect.Of(egress.NewRequest(target(t, "all.example", 443), "DELETE", "/../x", ""))(w.t)
	v = w.Egress.Decide(t.Context(), ada, all)
	expect.True(t, v.Allowed, "a rule without method and path covers everything: %+v", v)
}

func TestReadingWithoutPushing(t *testing.T) {
	w := open(t, "", time.Nanosecond)
	w.narrow(egress.Allow, "api.example", strings.Join(egress.ReadOnly(), ","), "/team/*")
	for _, c := range []struct {
		method, path, query string
		want                bool
	}{
		{"GET", "/team/r.git/info/refs", "service=git-upload-pack", true},
		{"POST", "/team/r.git/git-upload-pack", "", true},
		{"GET", "/team/r.git/info/refs", "service=git-receive-pack", false},
		{"POST", "/team/r.git/git-receive-pack", "", false},
		{"GET", "/other/r.git/info/refs", "service=git-upload-pack", false},
		{"GET", "/team/x.tar.gz", "", true},
		{"POST", "/team/x", "", false},
	} {
		v := w.Egress.Decide(t.Context(), ada, request(t, c.method, c.path, c.query))
		expect.True(t, v.Allowed == c.want, "%s %s: %+v", c.method, c.path, v)
	}
}

func TestARequestThatNoRuleCoversIsAPersonsToAllow(t *testing.T) {
	w := open(t, "", 0)
	w.narrow(egress.Allow, "api.example", "GET", "")
	waits := make(chan egress.Verdict, 1)
	ask := func(r egress.Request) <-chan egress.Verdict {
		go func() { waits <- w.Egress.Decide(t.Context(), ada, r) }()
		return waits
	}
	post := request(t, "POST", "/v1/x", "token=secret")
	done := ask(post)
	a := w.open(1)[0]
	if a.Action.Kind != judge.KindNet || a.Action.Tool != "api.example:443 POST" || a.Intent != "curl of ada asks api.example:443 for POST /v1/x" ||
		string(a.Action.Args) != `{"host":"api.example","port":443,"method":"POST","path":"/v1/x","process":"curl"}` {
		t.Errorf("%+v", a)
	}
	w.answer(a.ApprovalID, judge.Answer{Approve: true, Always: &judge.Always{For: "agent", Expires: time.Hour, MaxUses: 10}})
	v := <-done
	expect.True(t, v.Allowed && v.Asked, "%+v", v)
	v = <-ask(request(t, "POST", "/v1/y", ""))
	expect.True(t, v.Allowed, "the answer holds for the method: %+v", v)
	done = ask(request(t, "DELETE", "/v1/x", ""))
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "no"})
	v = <-done
	expect.True(t, !v.Allowed, "and for no other: %+v", v)
	if all := w.log("egress.allowed"); len(all) != 2 || !strings.Contains(string(all[1].Payload), `"method":"POST","path":"/v1/x"`) || strings.Contains(string(all[1].Payload), "secret") {
		t.Errorf("%s", all[1].Payload)
	}
	all := w.log("egress.refused")
	expect.True(t, len(all) == 1 && strings.Contains(string(all[0].Payload), `"method":"DELETE"`), "%v", all)
}

func TestReadingAHostIsOneQuestionOfARun(t *testing.T) {
	w := open(t, "", 0)
	ask := func(method, path string) <-chan egress.Verdict {
		return expect.Later(func() egress.Verdict { return w.Egress.Decide(t.Context(), ada, request(t, method, path, "")) })
	}
	first, second := ask("GET", "/a"), ask("HEAD", "/b")
	a := w.open(1)[0]
	expect.Has(t, a.Intent, ", and for what else it reads there")
	w.answer(a.ApprovalID, judge.Answer{Approve: true})
	for i, done := range []<-chan egress.Verdict{first, second, ask("GET", "/c"), ask("POST", "/r.git/git-upload-pack")} {
		v := <-done
		expect.True(t, v.Allowed && v.Asked, "%d: %+v", i, v)
	}
	for _, c := range []struct{ method, path string }{{"POST", "/a"}, {"POST", "/b"}, {"GET", "/a/../b"}, {"GET", "/r.git/git-receive-pack"}} {
		done := ask(c.method, c.path)
		a := w.open(1)[0]
		expect.True(t, !strings.Contains(a.Intent, "what else"), "%s", a.Intent)
		w.answer(a.ApprovalID, judge.Answer{Reason: "no"})
		v := <-done
		expect.True(t, !v.Allowed, "%s %s: %+v", c.method, c.path, v)
	}
	other := ada
	other.Run = "r2"
	done := expect.Later(func() egress.Verdict { return w.Egress.Decide(t.Context(), other, request(t, "GET", "/a", "")) })
	w.answer(w.open(1)[0].ApprovalID, judge.Answer{Reason: "no"})
	expect.True(t, !(<-done).Allowed, "it holds for another run")
	expect.True(t, (<-ask("GET", "/d")).Allowed, "a no of another run holds for this one")
}

func TestRulesAboutRequestsAreChecked(t *testing.T) {
	for _, c := range []struct{ methods, path string }{
		{"get", ""}, {"", "x"}, {"", "/a/*/b"}, {"", "/a/../b"}, {"", "/a//b"}, {"", "/" + strings.Repeat("a", 600)}, {"A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q", ""},
	} {
		r := egress.Rule{}
		expect.True(t, c.methods == "" || r.Narrow(strings.Split(c.methods, ","), c.path) != nil, "%+v", c)
		expect.True(t, c.path == "" || r.Narrow(nil, c.path) != nil, "%+v", c)
	}
	w := open(t, "", 0)
	w.narrow(egress.Allow, "a.example", "HEAD,GET,GET", "/x%2d%2fy/*")
	w.narrow(egress.Allow, "a.example", "PUT", "")
	w.put(egress.Allow, "a.example", func(r *egress.Rule) { r.Opaque = true })
	all, err := w.Egress.Rules(t.Context(), acme)
	expect.True(t, err == nil && len(all) == 3 && all[1].ID() == "a.example GET,HEAD /x-%2Fy/*", "%+v %v", all, err)
	expect.True(t, w.Egress.Opaque(ada, target(t, "a.example", 443)) && !w.Egress.Opaque(ada, target(t, "b.example", 443)),
		"one host is kept from being looked into")
	r := egress.Rule{Host: "a.example", Effect: egress.Deny, Opaque: true}
	expect.Fails(t, r.Check(), "a rule that denies has nothing to keep from being looked into")
}

func FuzzNewRequest(f *testing.F) {
	for _, s := range []string{"/a/b", "/%2e%2e/x", "/@scope%2fname", "*", "/r.git/git-receive-pack", "/%", "/a;b\\c", "/%25%32%65"} {
		f.Add("GET", s, "service=git-upload-pack")
		f.Add("POST", s, "a=b;c")
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		to := egress.Target{Host: "api.example", Port: 443}
		r, err := egress.NewRequest(to, method, path, query)
		if err != nil {
			return
		}
		for _, text := range []string{r.Path, r.Method} {
			expect.True(t, !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }), "%q %q is kept as %q", method, path, text)
		}
		again, err := egress.NewRequest(to, "GET", r.Path, "")
		expect.True(t, err == nil && (again.Method != "GET" || again.Path == r.Path), "%q is %q, then %q: %v", path, r.Path, again.Path, err)
		rule := egress.Rule{Effect: egress.Deny}
		if rule.Narrow([]string{method}, path) == nil {
			if other := (egress.Rule{}); other.Narrow(rule.Methods, rule.Path) != nil || other.Path != rule.Path {
				t.Errorf("the rule about %q is about %q, then %q", path, rule.Path, other.Path)
			}
		}
	})
}
