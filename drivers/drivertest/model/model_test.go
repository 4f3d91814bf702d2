package model

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// asked is a conversation in each wire format: a shell tool is offered, the
// user has said TEXT, and RESULT is what the tool gave if that is not "".
var asked = map[string]struct{ path, first, second string }{
	"chat completions": {
		"/v1/chat/completions",
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"RUN: ls"}],"tools":[{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{"type":"string"},"timeout":{"type":"number"}},"required":["command","timeout"]}}}]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"RUN: ls"}]},{"role":"tool","content":"a.txt"}]}`,
	},
	"responses": {
		"/v1/responses",
		`{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"RUN: ls"}]}],"tools":[{"type":"function","name":"exec_command","parameters":{"properties":{"cmd":{"type":"string"}},"required":["cmd"]}}]}`,
		`{"input":[{"role":"user","content":"RUN: ls"},{"type":"function_call_output","output":"a.txt"}]}`,
	},
	"messages": {
		"/v1/messages",
		`{"messages":[{"role":"user","content":"RUN: ls"}],"tools":[{"name":"shell","input_schema":{"properties":{"command":{"type":"array"}},"required":["command"]}}]}`,
		`{"messages":[{"role":"user","content":"RUN: ls"},{"role":"user","content":[{"type":"tool_result","content":"a.txt"}]}]}`,
	},
	"generateContent": {
		"/v1beta/models/any:generateContent",
		`{"contents":[{"role":"user","parts":[{"text":"RUN: ls"}]}],"tools":[{"functionDeclarations":[{"name":"run_shell_command","parametersJsonSchema":{"properties":{"command":{"type":"string"}},"required":["command"]}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"RUN: ls"}]},{"role":"user","parts":[{"functionResponse":{"response":{"output":"a.txt"}}}]}]}`,
	},
}

func post(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	r := expect.Of(http.Post(s.URL+path, "application/json", strings.NewReader(body)))(t)
	defer r.Body.Close()
	data := expect.Of(io.ReadAll(r.Body))(t)
	return r.StatusCode, string(data)
}

func start(t *testing.T, opt Options) *Server {
	t.Helper()
	s := expect.Of(Start(opt))(t)
	t.Cleanup(s.Close)
	return s
}

func TestEveryFormatPlaysTheScript(t *testing.T) {
	s := start(t, Options{})
	for name, c := range asked {
		for _, live := range []bool{false, true} {
			path, first, second := c.path, c.first, c.second
			if live {
				path = strings.Replace(path, ":generate", ":streamGenerate", 1)
				first, second = `{"stream":true,`+first[1:], `{"stream":true,`+second[1:]
			}
			_, out := post(t, s, path, first)
			joined := strings.NewReplacer("\n", "", "data: ", "", `\"`, `"`).Replace(out)
			expect.True(t, strings.Contains(joined, "ls") && (strings.Contains(joined, "call_") || name == "generateContent"),
				"%s (stream %v): no call in %s", name, live, out)
			_, out = post(t, s, path, second)
			expect.True(t, strings.Contains(out, "FINAL: the t"), "%s (stream %v): no end in %s", name, live, out)
			expect.Is(t, live, bytes.Contains([]byte(out), []byte("data: ")), name, "stream", out)
		}
	}
	expect.Is(t, len(s.Requests()), 16, "requests were kept")
}

func TestASequenceIsPlayedResultByResult(t *testing.T) {
	s := start(t, Options{})
	head := `{"messages":[{"role":"user","content":"RUN: one\nTHEN RUN: two"}`
	tools := `],"tools":[{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{"type":"string"}}}}}]}`
	for _, want := range []string{"one", "two", "FINAL"} {
		_, got := post(t, s, "/v1/chat/completions", head+tools)
		expect.Has(t, got, want)
		head += `,{"role":"tool","content":"done"}`
	}
}

func TestRequiredArgumentsAreFilledByType(t *testing.T) {
	s := start(t, Options{})
	_, out := post(t, s, "/v1/chat/completions", asked["chat completions"].first)
	expect.Has(t, out, `{\"command\":\"ls\",\"timeout\":10000}`, "call")
	_, out = post(t, s, "/v1/messages", asked["messages"].first)
	expect.Has(t, out, `"input":{"command":["bash","-lc","ls"]}`, "call")
}

func TestFaultsComeAsAsked(t *testing.T) {
	s := start(t, Options{Fail: 1})
	code, _ := post(t, s, "/v1/responses", `{"input":"SAY: hi"}`)
	expect.True(t, code == http.StatusInternalServerError, "first: %d", code)
	code, out := post(t, s, "/v1/responses", `{"input":"SAY: hi"}`)
	expect.True(t, code == http.StatusOK && strings.Contains(out, "hi"), "second: %d %s", code, out)
	code, _ = post(t, s, "/nothing", "{}")
	expect.True(t, code == http.StatusNotFound, "unknown: %d", code)
	code, _ = post(t, s, "/v1/responses", "no json")
	expect.True(t, code == http.StatusBadRequest, "no json: %d", code)
}
