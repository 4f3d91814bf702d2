package mcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

// moving are engines that tenants move between.
type moving struct {
	mu   sync.Mutex
	here map[string]*engine.Engine
}

func (m *moving) Here(tenant string) (*engine.Engine, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	eng := m.here[tenant]
	return eng, eng != nil
}

func (m *moving) For(_ context.Context, tenant string) (*engine.Engine, error) {
	if eng, here := m.Here(tenant); here {
		return eng, nil
	}
	return nil, core.Errorf(core.Unavailable, "%s is with engine deck2", tenant)
}

func (m *moving) move(tenant string, to *engine.Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.here[tenant] = to
}

func TestEachTokenIsServedByTheEngineThatHasItsTenant(t *testing.T) {
	one, two := newHouse(t), newHouse(t)
	tokens, err := LoadTokens("tokens.yaml", []byte(`tokens:
  - {operator: vera, role: operator, token: the-token-of-vera}
  - {operator: otto, role: operator, tenant: t_other, token: the-token-of-otto}
  - {operator: zoe, role: operator, tenant: t_away, token: the-token-of-zoe}
`), lab)
	expect.No(t, err)
	engines := &moving{here: map[string]*engine.Engine{lab: one.eng, "t_other": two.eng}}
	router := NewRouter(engines, tokens, "", Options{})
	web := httptest.NewServer(router)
	t.Cleanup(func() { // after the clients, whose streams it waits for
		web.Close()
		expect.Is(t, router.Close(), nil)
	})
	url := web.URL + Path
	sees := func(token, want string) {
		t.Helper()
		for _, era := range eras {
			cs := expect.Of(dial(t, url, token, era, nil))(t)
			var list listAgentsAnswer
			use(t, cs, "list_agents", nil, &list)
			expect.True(t, list.Total == 1 && list.Agents[0].Name == want, "%s in %s sees %+v", token, era, list)
		}
	}
	sees("the-token-of-vera", "Sony")
	sees("the-token-of-otto", "Papi")
	before := len(one.events(t, lab, "mcp.refused"))
	expect.Is(t, post(t, url, "the-token-of-nobody", `{}`), http.StatusUnauthorized, "a stranger: HTTP")
	n := len(one.events(t, lab, "mcp.refused"))
	expect.True(t, n == before+1, "%d events tell of the stranger", n-before)

	if status, said := ask(t, url, "the-token-of-zoe"); status != http.StatusMisdirectedRequest || !strings.Contains(said, "UNAVAILABLE") || !strings.Contains(said, "deck2") {
		t.Errorf("a tenant of another engine: HTTP %d: %s", status, said)
	}
	old := expect.Of(dial(t, url, "the-token-of-vera", eras[0], nil))(t)
	engines.move(lab, two.eng)
	one.eng.Retire()
	expect.Fails(t, expect.Fault(old.ListTools(t.Context(), nil)), "a session goes on with an engine that is past")
	sees("the-token-of-vera", "Sony")
	engines.move(lab, nil)
	status, said := ask(t, url, "the-token-of-vera")
	expect.True(t, status == http.StatusMisdirectedRequest, "a tenant that has moved: HTTP %d: %s", status, said)
}

// ask begins a session, and returns what is said.
func ask(t *testing.T, url, token string) (status int, said string) {
	t.Helper()
	r := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	got := expect.Of(bearer(token).RoundTrip(r))(t)
	defer got.Body.Close()
	body := expect.Of(io.ReadAll(got.Body))(t)
	return got.StatusCode, string(body)
}
