package modelproxy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"swarmdeck/engine/fleet"
)

func TestOfAnAnswerWithTooManyValuesTheTokensAreCounted(t *testing.T) {
	many := strings.Repeat(`{},`, 30_000)
	for name, c := range map[string]struct{ path, body string }{
		"chat completions": {"/chat/completions", `{"choices":[` + many + `{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}}`},
		"responses":        {"/responses", `{"output":[` + many + `{}],"status":"completed","usage":{"input_tokens":7,"output_tokens":1}}`},
		"messages":         {"/messages", `{"content":[` + many + `{}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":1}}`},
		"generateContent":  {"/models/m:generateContent", `{"candidates":[` + many + `{}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}}`},
		"streamed":         {"/responses", `data: {"type":"response.completed","response":{"output":[` + many + `{}],"status":"completed","usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				if name == "streamed" {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				_, _ = io.WriteString(w, c.body)
			}))
			if _, got := r.post(c.path, `{"model":"m"}`); got != c.body {
				t.Errorf("%d of %d bytes come back", len(got), len(c.body))
			}
			e := r.events(2)[1]
			want := fmt.Sprintf("(%d bytes, sha256 %x, more than 20000 values)", len(c.body), sha256.Sum256([]byte(c.body)))
			if name == "streamed" {
				want = fmt.Sprintf("(%d bytes in pieces that were not understood)", len(c.body)-len("data: \n\n"))
			}
			if got := text(e.Model); e.Status != "ok" || got != "assistant[text:"+want+";]" {
				t.Errorf("%s %.300s", e.Status, got)
			}
			if e.Model.Tokens == nil || *e.Model.Tokens != (fleet.ModelTokens{Prompt: 7, Completion: 1, Total: 8}) {
				t.Errorf("tokens: %+v", e.Model.Tokens)
			}
		})
	}
}
