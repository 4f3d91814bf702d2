package modelproxy_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"swarmdeck/drivers/modelproxy"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

// held is an agent whose environment holds a credential, and what came to its
// model.
type held struct {
	*rig
	env  map[string]string // as its process has it
	came atomic.Pointer[http.Request]
}

func newHeld(t *testing.T, env map[string]string) *held {
	h := &held{}
	h.rig = newRig(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		h.came.Store(r)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"hi"}}]}`)
	})+"/base")
	h.env, _ = h.lines.Conceal(h.lines.Environ(env))
	return h
}

// send makes a request with one header, "" for none; came is nil when it was
// not passed on.
func (h *held) send(url, name, value string) (status int, came *http.Request) {
	h.t.Helper()
	h.came.Store(nil)
	req := expect.Of(http.NewRequestWithContext(h.t.Context(), http.MethodPost, url, strings.NewReader(`{"model":"m","messages":[]}`)))(h.t)
	if name != "" {
		req.Header.Set(name, value)
	}
	res := expect.Of(http.DefaultClient.Do(req))(h.t)
	_ = res.Body.Close()
	return res.StatusCode, h.came.Load()
}

func TestACredentialIsPutInWhereItsPlaceholderIsShown(t *testing.T) {
	h := newHeld(t, map[string]string{"OPENAI_API_KEY": key + "\n"})
	mine := h.env["OPENAI_API_KEY"]
	expect.Must(t, !strings.Contains(mine, key[3:]) && strings.HasPrefix(mine, "sk-") && len(mine) >= 20, "the placeholder is %q", mine)
	for _, c := range []struct{ name, before, after string }{
		{"Authorization", "Bearer " + mine, "Bearer " + key},
		{"Authorization", "bearer  " + mine + " ", "bearer " + key},
		{"X-Api-Key", mine, key},
		{"X-Goog-Api-Key", mine, key},
		{"Api-Key", mine, key},
		{"Authorization", "Bearer", "Bearer"},
		{"X-Other", mine, mine},
	} {
		status, came := h.send(h.url+"/chat/completions", c.name, c.before)
		expect.True(t, status == http.StatusOK && came != nil && came.Header.Get(c.name) == c.after, "%s %q: %d %+v", c.name, c.before, status, came)
	}
	for before, after := range map[string]string{
		"?alt=sse&key=" + mine + "&x=a+b%20c": "alt=sse&key=" + key + "&x=a+b%20c",
		"?k%65y=" + mine + "&key=":            "k%65y=" + key + "&key=",
		"?text=" + mine:                       "text=" + mine,
	} {
		status, came := h.send(h.url+"/models/m:generateContent"+before, "", "")
		expect.True(t, status == http.StatusOK && came != nil && came.URL.RawQuery == after, "%s: %d %+v", before, status, came)
	}
}

func TestAnotherCredentialIsRefusedAndOnRecord(t *testing.T) {
	h, other := newHeld(t, map[string]string{"OPENAI_API_KEY": key}), newHeld(t, map[string]string{"OPENAI_API_KEY": key})
	old := h.env["OPENAI_API_KEY"]
	h.env, _ = h.lines.Conceal(map[string]string{"OPENAI_API_KEY": key}) // the next run
	mine := h.env["OPENAI_API_KEY"]
	expect.Must(t, mine != old && mine != other.env["OPENAI_API_KEY"], "two runs have the same placeholder")
	for what, c := range map[string]struct{ query, name, value string }{
		"another cell's placeholder": {"", "Authorization", "Bearer " + other.env["OPENAI_API_KEY"]},
		"that of an earlier run":     {"", "X-Api-Key", old},
		"somebody else's key":        {"", "Api-Key", "sk-somebody-elses-0123456789"},
		"the key itself":             {"", "Authorization", "Bearer " + key},
		"two of them":                {"", "Authorization", "Bearer " + mine + ", Bearer sk-x"},
		"a password":                 {"", "Authorization", "Basic eDp5"},
		"one in the query":           {"?key=sk-somebody-elses", "Authorization", "Bearer " + mine},
		"a second in the query":      {"?key=" + mine + ";key=x", "", ""},
		"a token in the query":       {"?Access_Token=x", "Authorization", "Bearer " + mine},
	} {
		status, came := h.send(h.url+"/v1/files"+c.query, c.name, c.value)
		expect.True(t, status == http.StatusForbidden && came == nil, "%s: %d", what, status)
		all := h.events(2)
		asked, answered := all[len(all)-2], all[len(all)-1]
		if text(asked.Model) != "user[text:(a request to /v1/files, which was not read);]" || answered.Model.Fault != "credential_refused" || answered.CallID != asked.CallID {
			t.Errorf("%s: %+v %+v", what, asked, answered)
		}
	}
	// It is worth nothing at another's model either.
	status, came := other.send(other.url+"/v1/files", "Authorization", "Bearer "+mine)
	expect.True(t, status == http.StatusForbidden && came == nil, "%v", status)
}

func TestACredentialStaysAtItsAddress(t *testing.T) {
	h := newHeld(t, map[string]string{"OPENAI_API_KEY": key})
	at, mine := h.url[:strings.LastIndex(h.url, "/")], h.env["OPENAI_API_KEY"]
	for _, url := range []string{
		h.url + "/%2e%2e/elsewhere", h.url + "/a/..%2f..%2felsewhere", h.url + "/a/%2E./%2e./b", h.url + "/..%5celsewhere", at + "//elsewhere/v1",
	} {
		status, came := h.send(url, "Authorization", "Bearer "+mine)
		expect.True(t, status >= 400 && came == nil, "%s: %d", url, status)
	}
	status, came := h.send(h.url+"/a/%2e%2e/b", "Authorization", "Bearer "+mine)
	expect.True(t, status == http.StatusOK && came != nil, "%v", status)
}

func TestAnAnswerThatRepeatsACredentialDoesNotHaveIt(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, key string){
		"whole": func(w http.ResponseWriter, key string) {
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"no such key: %s"}}]}`, key)
		},
		"refusal": func(w http.ResponseWriter, key string) {
			w.Header().Set("X-Debug", "Authorization: "+key)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"no such key: %s"}}`, key)
		},
		"in pieces": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, piece := range []string{"data: {\"choices\":[{\"delta\":{\"content\":\"no such key: ", key[:7], key[7:], "\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"} {
				_, _ = io.WriteString(w, piece)
				w.(http.Flusher).Flush()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, upstream(t, func(w http.ResponseWriter, req *http.Request) {
				answer(w, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
			}))
			env, _ := r.lines.Conceal(map[string]string{"OPENAI_API_KEY": key})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/chat/completions", strings.NewReader(`{"model":"m","messages":[]}`))
			r.no(err)
			req.Header.Set("Authorization", "Bearer "+env["OPENAI_API_KEY"])
			res := expect.Of(http.DefaultClient.Do(req))(r.t)
			defer res.Body.Close()
			body := expect.Of(io.ReadAll(res.Body))(r.t)
			all := string(body) + fmt.Sprint(res.Header)
			expect.True(t, !strings.Contains(all, key) && strings.Contains(string(body), "no such key: [secret OPENAI_API_KEY]"), "%v", all)
			if e := r.events(2)[1]; strings.Contains(e.Error+text(e.Model), key) || !strings.Contains(e.Error+text(e.Model), "no such key: [") {
				t.Errorf("%s %s", e.Error, text(e.Model))
			}
		})
	}
}

func TestWhichVariablesHoldPlaceholders(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		addresses string
		env       map[string]string
		want      string
	}{
		"those of its clients": {"ANTHROPIC_BASE_URL OPENAI_BASE_URL GOOGLE_GEMINI_BASE_URL", map[string]string{
			"ANTHROPIC_API_KEY": "sk-ant-api03-" + key, "ANTHROPIC_AUTH_TOKEN": "token-one", "CLAUDE_CODE_OAUTH_TOKEN": "token-two", "OPENAI_API_KEY": key, "GEMINI_API_KEY": "AIza-one", "GOOGLE_API_KEY": "AIza-two",
		}, "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN GEMINI_API_KEY GOOGLE_API_KEY OPENAI_API_KEY"},
		"no one else's":           {"OPENAI_BASE_URL", map[string]string{"OPENAI_API_KEY": "", "OPENAI_ORG_ID": "organisation", "ANTHROPIC_API_KEY": "sk-ant-" + key, "GITHUB_TOKEN": "token-one"}, ""},
		"named like the address":  {"AZURE_OPENAI_ENDPOINT MY_URL", map[string]string{"AZURE_OPENAI_ENDPOINT": url, "MY_URL": url, "AZURE_OPENAI_API_KEY": "azure-one", "MY_TOKEN": "token-one", "MY_NAME": "nothing"}, "AZURE_OPENAI_API_KEY MY_TOKEN"},
		"others that hold it too": {"OPENAI_BASE_URL", map[string]string{"OPENAI_API_KEY": key, "LLM_KEY": key, "HEADERS": "X-Key: " + key, "OTHER": "x"}, "HEADERS LLM_KEY OPENAI_API_KEY"},
		"a word only as a whole":  {"OPENAI_BASE_URL", map[string]string{"OPENAI_API_KEY": "ollama", "OLLAMA_HOST": "ollama.local", "KIND": "ollama"}, "KIND OPENAI_API_KEY"},
		"one that is too short":   {"OPENAI_BASE_URL", map[string]string{"OPENAI_API_KEY": "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := modelproxy.New()
			defer p.Close()
			to := expect.Of(modelproxy.Read(strings.Fields(c.addresses), c.env))(t)
			lines := expect.Of(p.Open(to, c.env, func(fleet.Event) func(fleet.Event) { return nil }))(t)
			defer lines.Close()
			env, names := lines.Conceal(c.env)
			expect.Is(t, strings.Join(names, " "), c.want)
			for name, value := range c.env {
				same := env[name] == value
				expect.True(t, same != slices.Contains(names, name), "%s holds %q, and held %q", name, env[name], value)
			}
		})
	}
}

// BenchmarkCredential is a small request whose credential is put in, and whose
// answer of 1 MB is looked at.
func BenchmarkCredential(b *testing.B) {
	answer := `{"choices":[{"message":{"content":"` + strings.Repeat("some words of an answer ", 1<<20/24) + `"}}]}`
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer up.Close()
	for name, env := range map[string]map[string]string{"without": {}, "with": {"OPENAI_API_KEY": key}} {
		b.Run(name, func(b *testing.B) {
			p := modelproxy.New()
			defer p.Close()
			to := expect.Of(modelproxy.Read([]string{"OPENAI_BASE_URL"}, map[string]string{"OPENAI_BASE_URL": up.URL}))(b)
			lines := expect.Of(p.Open(to, nil, func(fleet.Event) func(fleet.Event) { return func(fleet.Event) {} }))(b)
			defer lines.Close()
			env, _ = lines.Conceal(lines.Environ(env))
			b.SetBytes(int64(len(answer)))
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, env["OPENAI_BASE_URL"]+"/chat/completions", strings.NewReader(`{"model":"m"}`))
				expect.No(b, err)
				req.Header.Set("Authorization", "Bearer "+env["OPENAI_API_KEY"])
				res := expect.Of(http.DefaultClient.Do(req))(b)
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		})
	}
}

func TestAnAnswerThatCantBeReadForACredentialIsRefused(t *testing.T) {
	for encoding, refused := range map[string]bool{"gzip": true, "br": true, "Identity": false, "": false} {
		r := newRig(t, upstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			g := gzip.NewWriter(w)
			_, _ = io.WriteString(g, r.Header.Get("Authorization"))
			_ = g.Close()
		}))
		env, _ := r.lines.Conceal(r.lines.Environ(map[string]string{"OPENAI_API_KEY": key}))
		req := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/chat/completions", strings.NewReader(`{"model":"m"}`)))(r.t)
		req.Header.Set("Authorization", "Bearer "+env["OPENAI_API_KEY"])
		req.Header.Set("Accept-Encoding", "gzip, br")
		res := expect.Of(http.DefaultClient.Do(req))(r.t)
		data, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		expect.True(t, (res.StatusCode == http.StatusBadGateway) == refused && (!refused || strings.Contains(string(data), "encoded as "+encoding)),
			"%q: %d %s", encoding, res.StatusCode, data)
		e := r.events(2)[1]
		expect.True(t, refused == (e.Status != "ok"), "%q: %+v", encoding, e)
	}
}
