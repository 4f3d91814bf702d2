package modelproxy

import (
	"context"
	"net/http"
	"testing"

	"swarmdeck/expect"
)

func TestARequestWaitsForItsTurnToBeUnderstood(t *testing.T) {
	p := New()
	ask := func(ctx context.Context) string {
		r := expect.Of(http.NewRequestWithContext(ctx, http.MethodPost, "/chat/completions", nil))(t)
		f, _ := formatOf("/chat/completions")
		x := &exchange{l: &line{p: p}, r: r, f: f, path: "/chat/completions", in: p.run().capture(maxAsked)}
		x.in.write([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		return x.request().Messages[0].Content[0].Text
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	expect.Is(t, ask(gone), "hi", "with nobody before it")
	for range maxRead {
		p.reading <- struct{}{}
	}
	expect.Has(t, ask(gone), "the agent did not wait", "with others before it")
	got := expect.Later(func() string { return ask(t.Context()) })
	select {
	case text := <-got:
		t.Errorf("before its turn: %s", text)
	case <-p.reading: // one is done
		expect.Is(t, <-got, "hi", "in its turn")
	}
	expect.Is(t, len(p.reading), maxRead-1, "are being read")
}
