package modelproxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// rig is a proxy with one line, and what was told of it.
type rig struct {
	t     *testing.T
	p     *modelproxy.Proxy
	lines *modelproxy.Lines
	url   string

	mu   sync.Mutex
	told []fleet.Event
	bell chan struct{}
}

func newRig(t *testing.T, upstream string) *rig {
	t.Helper()
	r := &rig{t: t, p: modelproxy.New(), bell: make(chan struct{}, 1000)}
	t.Cleanup(func() { r.no(r.p.Close()) })
	env := map[string]string{"OPENAI_BASE_URL": upstream}
	to, err := modelproxy.Read([]string{"OPENAI_BASE_URL"}, env)
	r.no(err)
	r.lines, err = r.p.Open(to, env, func(asked fleet.Event) func(fleet.Event) {
		r.add(asked)
		return r.add
	})
	r.no(err)
	t.Cleanup(r.lines.Close)
	r.url = r.lines.Environ(nil)["OPENAI_BASE_URL"]
	return r
}

func (r *rig) no(err error) {
	r.t.Helper()
	expect.No(r.t, err)
}

func (r *rig) add(e fleet.Event) {
	r.mu.Lock()
	r.told = append(r.told, e)
	r.mu.Unlock()
	r.bell <- struct{}{}
}

// count is how many events were told.
func (r *rig) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.told)
}

// events waits until n events were told.
func (r *rig) events(n int) []fleet.Event {
	r.t.Helper()
	for range n {
		select {
		case <-r.bell:
		case <-time.After(2 * time.Minute):
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("%d events, want %d: %+v", len(r.told), n, r.told)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]fleet.Event(nil), r.told...)
}

func (r *rig) post(path, body string) (int, string) {
	r.t.Helper()
	req := expect.Of(http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+path, strings.NewReader(body)))(r.t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("X-Api-Key", key)
	res := expect.Of(http.DefaultClient.Do(req))(r.t)
	defer res.Body.Close()
	data := expect.Of(io.ReadAll(res.Body))(r.t)
	return res.StatusCode, string(data)
}

const key = "sk-verysecretkey-0123456789"

// upstream serves one handler.
func upstream(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// text is what a message says, part by part.
func text(c *fleet.ModelCall) string {
	var b strings.Builder
	for _, m := range c.Messages {
		b.WriteString(string(m.Role) + "[")
		for _, p := range m.Content {
			b.WriteString(p.Type + ":" + p.Text + p.URL + p.Name + string(p.Input) + string(p.Output) + ";")
		}
		b.WriteString("]")
	}
	return b.String()
}
