package modelproxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// BenchmarkRequest is a request of 100 KB that is answered with a stream of 100
// pieces: straight, and through the recorder.
func BenchmarkRequest(b *testing.B) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 100 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"piece %d \"}}]}\n\n", i)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer model.Close()
	p := modelproxy.New()
	defer p.Close()
	env := map[string]string{"OPENAI_BASE_URL": model.URL}
	to := expect.Of(modelproxy.Read([]string{"OPENAI_BASE_URL"}, env))(b)
	lines := expect.Of(p.Open(to, env, func(fleet.Event) func(fleet.Event) { return func(fleet.Event) {} }))(b)
	defer lines.Close()
	var body strings.Builder
	body.WriteString(`{"model":"m","stream":true,"messages":[{"role":"system","content":"s"}`)
	for i := range 100 {
		fmt.Fprintf(&body, `,{"role":"user","content":"%d %s"}`, i, strings.Repeat("x", 1000))
	}
	body.WriteString("]}")
	for name, url := range map[string]string{"straight": model.URL, "recorded": lines.Environ(nil)["OPENAI_BASE_URL"]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				res := expect.Of(http.Post(url+"/chat/completions", "application/json", strings.NewReader(body.String())))(b)
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		})
	}
}
