package modelproxy_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/expect"
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
			_, got := r.post(c.path, `{"model":"m"}`)
			expect.True(t, got == c.body, "%d of %d bytes come back", len(got), len(c.body))
			e := r.events(2)[1]
			want := "(" + digest(c.body) + ", more than 20000 values)"
			if name == "streamed" {
				want = fmt.Sprintf("(%d bytes more are not kept)", len(c.body)-len("data: \n\n"))
			}
			got = text(e.Model)
			expect.True(t, e.Status == "ok" && got == "assistant[text:"+want+";]", "%s %.300s", e.Status, got)
			expect.True(t, e.Model.Tokens != nil && *e.Model.Tokens == (dag.Usage{PromptTokens: 7, CompletionTokens: 1, TotalTokens: 8}), "tokens: %+v", e.Model.Tokens)
		})
	}
}

// digest is how a body, or a part of one, is described.
func digest(s string) string {
	return fmt.Sprintf("%d bytes, sha256 %x", len(s), sha256.Sum256([]byte(s)))
}

func TestWhatIsNotKeptOfAnAnswerIsTold(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":1,"input_tokens":7,"output_tokens":1},"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}`
	chat := func(message string) string { return `{"choices":[{"message":{` + message + `}}],` + usage + `}` }
	text5 := chat(`"content":"` + x(5<<20) + `"`)
	long := x(3 << 19)
	across := x(4<<10-5) + key + long
	args := `{"x":"` + long + `"}`
	for name, c := range map[string]struct {
		path, encoding, body, says string
		uncounted                  bool
	}{
		"too long":       {"/chat/completions", "", text5, "text:(" + digest(text5) + ", too long to be kept);", true},
		"encoded":        {"/chat/completions", "gzip", chat(""), "text:(" + digest(chat("")) + ", encoded as gzip);", true},
		"called encoded": {"/chat/completions", "identity", chat(`"content":"hi"`), "text:hi;", false},
		"no JSON":        {"/messages", "", "<html>", "text:(" + digest("<html>") + ", not understood);", true},
		"a long text":    {"/chat/completions", "", chat(`"content":"` + long + `"`), "text:" + x(4<<10) + "… (" + digest(long) + ");", false},
		"a credential across the cut": {
			"/chat/completions", "", chat(`"content":"` + across + `"`),
			"text:" + x(4<<10-5) + "[cred… (" + digest(across) + ");", false,
		},
		"long arguments": {
			"/chat/completions", "", chat(`"tool_calls":[{"id":"c","function":{"name":"write","arguments":` + fmt.Sprintf("%q", args) + `}}]`),
			`tool_use:write{"text":"{\"x\":\"` + x(4<<10-6) + "… (" + digest(args) + `)"};`, false,
		},
		"a long text and what follows": {
			"/messages", "", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"` + long + `"},{"type":"text","text":"b"},{"type":"tool_use","name":"ls","input":{"a":1}}],` + usage + `}`,
			"text:a;text:" + x(4<<10) + "… (" + digest(long) + `);text:b;tool_use:ls{"a":1};`, false,
		},
		"many parts": {
			"/messages", "", `{"content":[` + strings.Repeat(`{"type":"text","text":"abc"},`, 1002) + `{"type":"tool_use","input":{}}],` + usage + `}`,
			"text:" + strings.Repeat("abc", 1000) + ";text:(8 bytes more are not kept);", false,
		},
		"images": {
			"/models/m:generateContent", "", `{"candidates":[{"content":{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AA"}},{"inlineData":{"mimeType":"image/png","data":"BB"}},{"text":"b"},{"fileData":{"fileUri":"https://x/y"}}]}}],` + usage + `}`,
			"text:a;image_url:data:image/png;base64,AA;image_url:data:image/png;base64,BB;text:b;image_url:https://x/y;", false,
		},
		"a long image": {
			"/models/m:generateContent", "", `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + long + `"}}]}}],` + usage + `}`,
			"image_url:data:image/png;base64," + x(4<<10-22) + "… (" + digest("data:image/png;base64,"+long) + ");", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				_, _ = io.WriteString(w, c.body)
			}))
			req := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+c.path, strings.NewReader(`{"model":"m"}`)))(r.t)
			req.Header.Set("Authorization", "Bearer "+key)
			req.Header.Set("Accept-Encoding", "gzip") // not to be decoded here
			res := expect.Of(http.DefaultClient.Do(req))(r.t)
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			expect.True(t, err == nil && string(got) == c.body, "%d of %d bytes come back: %v", len(got), len(c.body), err)
			e := r.events(2)[1]
			if got := text(e.Model); e.Status != "ok" || got != "assistant["+c.says+"]" {
				t.Errorf("%s %.200s … %s, want %.200s", e.Status, got, got[max(0, len(got)-200):], c.says)
			}
			expect.True(t, c.uncounted == (e.Model.Tokens == nil) && (c.uncounted || e.Model.Tokens.TotalTokens == 8), "tokens: %+v", e.Model.Tokens)
		})
	}
}

func TestALongEventOfAStreamDoesNotCutItOff(t *testing.T) {
	hello := "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hello\"}\n\n"
	completed := func(size int) string {
		return `data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"input_audio","data":"` +
			strings.Repeat("A", size) + `"}]}],"usage":{"input_tokens":5,"output_tokens":6}}}`
	}
	for name, c := range map[string]struct {
		stream, status, fault, says string
		tokens                      int64
	}{
		"one that is understood":    {hello + completed(3<<19) + "\n\n", "ok", "", "text:hello;", 11},
		"one that is not":           {hello + completed(5<<20) + "\n\n", "ok", "", fmt.Sprintf("text:hello;text:(%d bytes more are not kept);", len(completed(5<<20))), 0},
		"one whose end is not told": {hello + completed(5<<20), "ok", "", fmt.Sprintf("text:hello;text:(%d bytes more are not kept);", len(completed(5<<20))), 0},
		"one before it is cut off":  {completed(5<<20) + "\n\n" + hello, "interrupted", "truncated", fmt.Sprintf("text:hello;text:(%d bytes more are not kept);", len(completed(5<<20))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.stream)
			}))
			_, got := r.post("/responses", `{"model":"m","stream":true,"input":"draw"}`)
			expect.True(t, got == c.stream, "%d of %d bytes come back", len(got), len(c.stream))
			e := r.events(2)[1]
			if got := text(e.Model); e.Status != c.status || e.Model.Fault != c.fault || got != "assistant["+c.says+"]" {
				t.Errorf("%s %s %.300s, want %s", e.Status, e.Model.Fault, got, c.says)
			}
			if got := e.Model.Tokens; (got == nil) != (c.tokens == 0) || got != nil && got.TotalTokens != c.tokens {
				t.Errorf("tokens: %+v", got)
			}
		})
	}
}
