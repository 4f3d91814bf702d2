package modelproxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"swarmdeck/drivers/drivertest/model"
	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// requests ask for a call of a tool, in each of the formats.
var requests = map[string]struct{ path, body string }{
	"chat completions": {"/v1/chat/completions", `{"model":"m-1","temperature":0.5,%s"messages":[{"role":"system","content":"be good"},{"role":"user","content":"RUN: ls"}],"tools":[{"type":"function","function":{"name":"shell","parameters":{"properties":{"command":{"type":"string"}}}}}]}`},
	"responses":        {"/v1/responses", `{"model":"m-1","temperature":0.5,%s"instructions":"be good","input":[{"role":"user","content":[{"type":"input_text","text":"RUN: ls"}]}],"tools":[{"type":"function","name":"shell","parameters":{"properties":{"command":{"type":"string"}}}}]}`},
	"messages":         {"/v1/messages", `{"model":"m-1","temperature":0.5,%s"system":"be good","messages":[{"role":"user","content":"RUN: ls"}],"tools":[{"name":"shell","input_schema":{"properties":{"command":{"type":"string"}}}}]}`},
	"generateContent":  {"/v1beta/models/m-1:generateContent", `{"generationConfig":{"temperature":0.5},%s"systemInstruction":{"parts":[{"text":"be good"}]},"contents":[{"role":"user","parts":[{"text":"RUN: ls"}]}],"tools":[{"functionDeclarations":[{"name":"shell","parameters":{"properties":{"command":{"type":"string"}}}}]}]}`},
}

func TestEachFormatIsUnderstoodWholeAndStreamed(t *testing.T) {
	m := expect.Of(model.Start(model.Options{}))(t)
	t.Cleanup(m.Close)
	for name, c := range requests {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, streamed), func(t *testing.T) {
				r := newRig(t, m.URL)
				path, flag := c.path, ""
				if streamed && name == "generateContent" {
					path = strings.Replace(path, ":generate", ":streamGenerate", 1) + "?alt=sse&key=" + key
				} else if streamed {
					flag = `"stream":true,`
				}
				for _, script := range []string{"RUN: ls", "SAY: a text of more than one piece, for sure"} {
					status, body := r.post(path, strings.Replace(fmt.Sprintf(c.body, flag), "RUN: ls", script, 1))
					expect.Must(t, status == http.StatusOK && strings.Contains(body, "usage"), "%d %s", status, body)
				}
				all := r.events(4)
				asked, answered := all[0], all[1]
				if asked.Type != "model_request" || asked.Model.Name != "m-1" || !strings.Contains(string(asked.Model.Params), `"temperature":0.5`) ||
					!strings.Contains(string(asked.Model.Tools), `"shell"`) || text(asked.Model) != "system[text:be good;]user[text:RUN: ls;]" {
					t.Errorf("asked: %s %s %s", text(asked.Model), asked.Model.Params, asked.Model.Tools)
				}
				if answered.Type != "model_response" || answered.CallID != asked.CallID || answered.Status != "ok" ||
					text(answered.Model) != `assistant[tool_use:shell{"command":"ls"};]` || answered.Model.Finish == "" {
					t.Errorf("answered: %+v %s", answered, text(answered.Model))
				}
				u := answered.Model.Tokens
				expect.True(t, u != nil && *u == (dag.Usage{PromptTokens: 100, CompletionTokens: 20, TotalTokens: 120}), "tokens: %+v", u)
				expect.Is(t, text(all[3].Model), "assistant[text:a text of more than one piece, for sure;]", "answered")
			})
		}
	}
}

func TestEachSideIsOnRecordBeforeTheOtherHasIt(t *testing.T) {
	const ask, answer = `{"model":"m","messages":[]}`, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
	for name, known := range map[string]bool{"of a known size": true, "whose end comes alone": false} {
		t.Run(name, func(t *testing.T) {
			asked, answered := make(chan struct{}), make(chan struct{})
			var r *rig
			r = newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
				readAll(t, req.Body, len(ask), asked)
				expect.Is(t, r.count(), 1, "the model has the request before it is on record")
				_, _ = io.WriteString(w, answer)
				if !known {
					w.(http.Flusher).Flush()
					select {
					case <-answered:
					case <-req.Context().Done():
					}
				}
			}))
			body, in := io.Pipe()
			go func() {
				_, _ = io.WriteString(in, ask)
				if !known {
					<-asked
				}
				_ = in.Close()
			}()
			req := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/chat/completions", body))(r.t)
			if known {
				req.ContentLength = int64(len(ask))
			}
			res := expect.Of(http.DefaultClient.Do(req))(r.t)
			defer res.Body.Close()
			readAll(t, res.Body, len(answer), answered)
			expect.Is(t, r.count(), 2, "the agent has the answer before it is on record")
			all := r.events(2)
			expect.True(t, all[1].Status == "ok" && text(all[1].Model) == "assistant[text:hi;]", "%+v", all[1])
		})
	}
}

// readAll reads n bytes; nearly is closed when all but the last are there.
func readAll(t *testing.T, r io.Reader, n int, nearly chan struct{}) {
	data := make([]byte, n)
	_, err := io.ReadFull(r, data[:n-1])
	close(nearly)
	if err == nil {
		_, err = io.ReadFull(r, data[n-1:])
	}
	expect.No(t, err)
}

func TestAStreamIsPassedOnAsItComes(t *testing.T) {
	step := make(chan struct{})
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, s := range []string{"one", "two"} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", s)
			w.(http.Flusher).Flush()
			<-step
		}
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	res := expect.Of(http.Post(r.url+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`)))(r.t)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for _, want := range []string{"one", "two"} {
		expect.Must(t, lines.Scan() && strings.Contains(lines.Text(), want) && lines.Scan(), "%q, want %s", lines.Text(), want)
		step <- struct{}{} // nothing more comes before the reader has this
	}
	for lines.Scan() {
		expect.True(t, lines.Text() != "data: [DONE]" || len(r.events(2)) == 2, "the agent has the end before it is on record")
	}
	all := r.told
	expect.True(t, text(all[1].Model) == "assistant[text:onetwo;]" && all[1].Model.Finish == "stop", "%s", text(all[1].Model))
}

func TestAWholeCallIsPassedOnOnceItsAnswerIsOnRecord(t *testing.T) {
	for name, c := range map[string]struct{ path, call, end string }{
		"responses": {
			"/responses", `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"run","arguments":"{}"}}`,
			`{"type":"response.completed","response":{"status":"completed"}}`,
		},
		"generateContent": {
			"/models/m:streamGenerateContent?alt=sse", `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"run","args":{}}}]}}]}`,
			`{"candidates":[{"finishReason":"STOP"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var came atomic.Bool
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", c.call)
				w.(http.Flusher).Flush()
				expect.Still(t, came.Load, "the agent has a call before the answer's end")
				fmt.Fprintf(w, "data: %s\n\n", c.end)
			}))
			res, err := http.Post(r.url+c.path, "application/json", strings.NewReader(`{"model":"m","stream":true,"input":"x","contents":[]}`))
			r.no(err)
			defer res.Body.Close()
			first := make([]byte, 1)
			_, err = io.ReadFull(res.Body, first)
			came.Store(true)
			r.no(err)
			expect.Is(t, r.count(), 2, "the agent has a call before the answer is on record")
			rest := expect.Of(io.ReadAll(res.Body))(r.t)
			expect.True(t, string(first)+string(rest) == fmt.Sprintf("data: %s\n\ndata: %s\n\n", c.call, c.end), "%q", rest)
			all := r.events(2)
			expect.True(t, strings.Contains(text(all[1].Model), "run") && all[1].Status == "ok", "%+v %s", all[1], text(all[1].Model))
		})
	}
}

func TestWhatIsCutOffEndsAsInterrupted(t *testing.T) {
	begin := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n")
		w.(http.Flusher).Flush()
	}
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	for name, c := range map[string]struct {
		serve func(http.ResponseWriter, *http.Request)
		leave bool // the agent goes after the first line
		shut  bool // its line is closed then
		fault string
	}{
		"the connection breaks before the answer":    {serve: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault: "upstream_lost"},
		"the connection breaks in mid-stream":        {serve: func(w http.ResponseWriter, _ *http.Request) { begin(w); panic(http.ErrAbortHandler) }, fault: "upstream_lost"},
		"the stream ends without an end":             {serve: func(w http.ResponseWriter, _ *http.Request) { begin(w) }, fault: "truncated"},
		"the agent leaves":                           {serve: func(w http.ResponseWriter, r *http.Request) { begin(w); <-r.Context().Done() }, leave: true, fault: "client_gone"},
		"the agent is closed":                        {serve: func(w http.ResponseWriter, r *http.Request) { begin(w); <-r.Context().Done() }, shut: true, fault: "client_gone"},
		"the agent leaves before there is an answer": {serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, leave: true, fault: "client_gone"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.ReadAll(req.Body)
				c.serve(w, req)
			}))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			req := expect.Of(http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`)))(r.t)
			go func() {
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return
				}
				defer res.Body.Close()
				line := make([]byte, 20)
				_, _ = io.ReadFull(res.Body, line)
				if c.leave {
					leave()
				}
				if c.shut {
					r.lines.Close()
				}
				_, _ = io.ReadAll(res.Body)
			}()
			r.events(1)
			if strings.Contains(name, "before there is") {
				leave()
			}
			<-r.bell
			r.mu.Lock()
			e := r.told[1]
			r.mu.Unlock()
			expect.True(t, e.Status == "interrupted" && e.Model.Fault == c.fault && e.Model.Gone == (c.fault == "client_gone") && e.Error != "",
				"%+v %+v", e, e.Model)
			got := text(e.Model)
			expect.True(t, strings.Contains(name, "before") || got == "assistant[text:half;]", "what came of it is lost: %s", got)
		})
	}
}

func TestErrorsOfTheModelAreTold(t *testing.T) {
	sse := func(lines string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, lines)
		}
	}
	for name, c := range map[string]struct {
		path   string
		answer func(http.ResponseWriter)
		fault  string
		says   string
	}{
		"a status": {"/chat/completions", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"slow down, `+key+`"}}`)
		}, "http_429", "slow down, [credential]"},
		"a status without a word": {"/messages", func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, "http_500", "500"},
		"in a chat":               {"/chat/completions", sse("data: {\"error\":{\"message\":\"no more\"}}\n\n"), "model_error", "no more"},
		"in messages":             {"/messages", sse("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), "model_error", "Overloaded"},
		"in responses":            {"/responses", sse("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"broken\"}}}\n\n"), "model_error", "server_error broken"},
		"in generateContent":      {"/models/m:streamGenerateContent", sse("data: [{\"error\":{\"message\":\"blocked\"}}]\n\n"), "model_error", "blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			r.post(c.path, `{"model":"m"}`)
			e := r.events(2)[1]
			expect.True(t, e.Status == "error" && e.Model.Fault == c.fault && strings.Contains(e.Error, c.says), "%+v %+v", e, e.Model)
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		r := newRig(t, "http://127.0.0.1:1")
		status, body := r.post("/responses", `{"model":"m-9","input":"hello"}`)
		expect.True(t, status == http.StatusBadGateway && strings.Contains(body, "gave no answer"), "%d %s", status, body)
		if all := r.events(2); all[0].Model.Name != "m-9" || text(all[0].Model) != "user[text:hello;]" || all[1].Model.Fault != "unreachable" {
			t.Errorf("%+v %+v", all[0].Model, all[1])
		}
	})
}

func TestCredentialsAreNotKept(t *testing.T) {
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
		expect.Is(t, req.Header.Get("Authorization"), "Bearer "+key, "the model does not get the key", req.Header)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"your key is `+key+`","tool_calls":[{"id":"1","function":{"name":"x","arguments":"{\"k\":\"`+key+`\"}"}}]}}]}`)
	}))
	r.post("/chat/completions?key=another-secret", `{"model":"m","api_key":"in-the-body-too","messages":[{"role":"user","content":"I found `+key+` and another-secret"}],
		"tools":[{"type":"mcp","authorization":"Bearer tool-secret","headers":{"X-Api-Key":"header-secret"}},{"properties":{"password":{"type":"string"}}}]}`)
	for _, e := range r.events(2) {
		all := text(e.Model) + string(e.Model.Params) + string(e.Model.Tools)
		for _, secret := range []string{key, "another-secret", "in-the-body-too", "tool-secret", "header-secret"} {
			expect.True(t, !strings.Contains(all, secret), "%s is kept: %s", secret, all)
		}
		expect.True(t, e.Type != "model_request" || strings.Contains(all, `"password":{"type":"string"}`), "a schema was changed: %s", all)
	}
}

func TestNobodyElseGetsThrough(t *testing.T) {
	hits := 0
	r := newRig(t, upstream(t, func(http.ResponseWriter, *http.Request) { hits++ }))
	at := r.url[:strings.LastIndex(r.url, "/")]
	expect.True(t, strings.HasPrefix(at, "http://127.0.0.1:") && len(r.url)-len(at) == 53, "%s", r.url)
	try := func(address, host string) {
		req := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}")))(r.t)
		if host != "" {
			req.Host = host
		}
		res := expect.Of(http.DefaultClient.Do(req))(r.t)
		_ = res.Body.Close()
		expect.Is(t, res.StatusCode, http.StatusNotFound, address)
	}
	try(at+"/chat/completions", "")
	try(at+"/"+strings.Repeat("0", 52)+"/chat/completions", "")
	try(r.url+"/chat/completions", "evil.example")
	other := newRig(t, "http://127.0.0.1:1").url
	try(other[:strings.LastIndex(other, "/")]+r.url[len(at):]+"/chat/completions", "")
	r.lines.Close()
	if res, err := http.Post(r.url+"/chat/completions", "", nil); err == nil {
		_ = res.Body.Close()
		t.Errorf("a closed line answers: %d", res.StatusCode)
	}
	expect.Is(t, hits, 0, "requests came through")
}

func TestWhatIsNoTalkPassesUnseen(t *testing.T) {
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "%s %s", req.Method, req.URL.RequestURI())
	})+"/base/v1/")
	_, body := r.post("/messages/count_tokens?beta=true", "{}")
	expect.True(t, body == "POST /base/v1/messages/count_tokens?beta=true", "%v", body)
	res := expect.Of(http.Get(r.url + "/models/a%2Fb"))(r.t)
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); string(body) != "GET /base/v1/models/a%2Fb" {
		t.Errorf("%s", body)
	}
	expect.True(t, len(r.told) == 0, "%+v", r.told)
}

func TestARequestIsSeenHoweverItsPathIsWritten(t *testing.T) {
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) { _, _ = io.WriteString(w, req.RequestURI) })+"/base")
	for i, path := range []string{
		"/chat/%63ompletions", "/chat%2Fcompletions", "/v1/messages/", "/v1//messages//", "/v1/messages/.", "/v1/messages/x/..",
		"/v1beta/models/m:generate%43ontent", "/v1beta/%6dodels/m%3AgenerateContent",
	} {
		_, body := r.post(path, `{"model":"m"}`)
		expect.True(t, body == "/base"+path, "%s is passed on as %s", path, body)
		all := r.events(2)
		expect.Must(t, len(all) == 2*i+2 && all[2*i].Model.Name == "m", "%s: %+v", path, all)
	}
}

func TestWhatIsTooLongIsCountedAndPassedOn(t *testing.T) {
	var got int64
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
		got, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 5<<20)+"\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"end\"}}]}\n\ndata: [DONE]\n\n")
	}))
	long := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("y", 9<<20) + `"}]}`
	_, body := r.post("/chat/completions", long)
	expect.True(t, got == int64(len(long)) && len(body) >= 5<<20, "%d of %d bytes went through, and %d back", got, len(long), len(body))
	all := r.events(2)
	says := text(all[0].Model)
	expect.True(t, strings.Contains(says, fmt.Sprintf("%d bytes, sha256 ", len(long))) && len(says) <= 300, "%.300s", says)
	expect.Is(t, text(all[1].Model), fmt.Sprintf("assistant[text:end;text:(%d bytes more are not kept);]", 5<<20+len("data: ")))
}

func TestWhatHasTooManyValuesIsCountedAndPassedOn(t *testing.T) {
	r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
		n, _ := io.Copy(io.Discard, req.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%d bytes"},"finish_reason":"stop"}]}`, n)
	}))
	for values, understood := range map[int]bool{19_000: true, 21_000: false} {
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"stop":[` + strings.Repeat("{},", values) + `{}]}`
		_, got := r.post("/chat/completions", body)
		expect.True(t, strings.Contains(got, fmt.Sprint(len(body), " bytes")), "of %d bytes: %s", len(body), got)
		all := r.events(2)
		asked := all[len(all)-2].Model
		says := text(asked)
		expect.True(t, !understood || says == "user[text:hi;]", "%.300s", says)
		if !understood && (!strings.Contains(says, fmt.Sprintf("%d bytes, sha256 ", len(body))) || !strings.Contains(says, "more than 20000 values") || len(asked.Params) > 0) {
			t.Errorf("%.300s", says)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		env   map[string]string
		want  string
	}{
		"a word that is none":      {[]string{"A=B"}, nil, "A=B"},
		"no address":               {[]string{"MY_URL"}, nil, "MY_URL"},
		"an address that is none":  {[]string{"MY_URL"}, map[string]string{"MY_URL": "ftp://x"}, "env.MY_URL"},
		"a user in it":             {[]string{"MY_URL"}, map[string]string{"MY_URL": "http://u:p@x"}, "env.MY_URL"},
		"twice":                    {[]string{"OPENAI_BASE_URL", "OPENAI_BASE_URL"}, nil, "once"},
		"too many":                 {strings.Split("A,B,C,D,E,F,G,H,I", ","), nil, "at most 8"},
		"an address that is empty": {[]string{"OPENAI_BASE_URL"}, map[string]string{"OPENAI_BASE_URL": ""}, "OPENAI_BASE_URL"},
	} {
		expect.Says(t, expect.Fault(modelproxy.Read(c.names, c.env)), c.want, name)
	}
	to, err := modelproxy.Read([]string{"ANTHROPIC_BASE_URL", "MY_URL"}, map[string]string{"MY_URL": "https://models.example/v1"})
	expect.True(t, err == nil && to["ANTHROPIC_BASE_URL"].Host == "api.anthropic.com" && to["MY_URL"].String() == "https://models.example/v1", "%v %v", to, err)
}

func TestAnAgentsUsualModelNeedsNoOption(t *testing.T) {
	for env, want := range map[string]string{
		"":                                       "",
		"ANTHROPIC_API_KEY":                      "ANTHROPIC_BASE_URL",
		"CLAUDE_CODE_OAUTH_TOKEN GOOGLE_API_KEY": "ANTHROPIC_BASE_URL GOOGLE_GEMINI_BASE_URL",
		"OPENAI_API_KEY":                         "", // Codex would not find the proxy
		"OPENAI_API_KEY OPENAI_BASE_URL":         "OPENAI_BASE_URL",
		"OPENAI_BASE_URL ANTHROPIC_BASE_URL":     "", // of no credential
		"MY_URL MY_API_KEY":                      "",
	} {
		vars := map[string]string{}
		for name := range strings.FieldsSeq(env) {
			vars[name] = "https://models.example"
		}
		to, err := modelproxy.Read(nil, vars)
		got := strings.Join(slices.Sorted(maps.Keys(to)), " ")
		expect.True(t, err == nil && got == want, "%s: %s, %v", env, got, err)
		to, err = modelproxy.Read([]string{}, vars)
		expect.True(t, err == nil && len(to) == 0, "%s: %v, %v", env, to, err)
	}
}
