package genai_test

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/drivers/dag/genai"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

const trace = "0af7651916cd43dd8448eb211c80319c"

// spanOf is a span with attributes given as pairs.
func spanOf(id, parent string, start, end int, status string, attrs ...string) string {
	var all []string
	for i := 0; i < len(attrs); i += 2 {
		value := attrs[i+1]
		if !strings.HasPrefix(value, "{") {
			value = fmt.Sprintf(`{"stringValue":%q}`, value)
		}
		all = append(all, fmt.Sprintf(`{"key":%q,"value":%s}`, attrs[i], value))
	}
	return fmt.Sprintf(`{"traceId":%q,"spanId":"00000000000000%s","parentSpanId":%q,"name":"x","kind":3,"startTimeUnixNano":"%d000000000","endTimeUnixNano":"%d000000000","attributes":[%s],"status":{%s},"events":[],"flags":257}`,
		trace, id, parent, 1700000000+start, 1700000000+end, strings.Join(all, ","), status)
}

func request(spans ...string) string {
	return `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"i"},"spans":[` +
		strings.Join(spans, ",") + `]}]}],"more":{"x":[1]}}`
}

func read(t *testing.T, text string) ([]dag.Event, error) {
	t.Helper()
	var all []dag.Event
	err := genai.Read(t.Context(), strings.NewReader(text), func(e dag.Event) error {
		all = append(all, e)
		return nil
	})
	return all, err
}

func brief(events []dag.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Kind)+" "+e.Brief())
	}
	return strings.Join(all, "\n")
}

func agentSpans() []string {
	const agent = "0000000000000001"
	return []string{
		spanOf("03", agent, 4, 6, "", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "get_weather", "gen_ai.tool.call.id", "call-1",
			"gen_ai.tool.type", "function", "gen_ai.tool.call.arguments", `{"stringValue":"{\"city\":\"Paris\"}"}`,
			"gen_ai.tool.call.result", `{"kvlistValue":{"values":[{"key":"degrees","value":{"intValue":"19"}}]}}`),
		spanOf("02", agent, 1, 3, "", "gen_ai.operation.name", "chat", "gen_ai.request.model", "m-1", "gen_ai.request.temperature", `{"doubleValue":0.5}`,
			"gen_ai.input.messages", `{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Weather in Paris?\"}]}]"}`,
			"gen_ai.output.messages", `{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"call-1\",\"name\":\"get_weather\",\"arguments\":{\"city\":\"Paris\"}}],\"finish_reason\":\"tool_call\"}]"}`,
			"gen_ai.usage.input_tokens", `{"intValue":"30"}`, "gen_ai.usage.output_tokens", `{"intValue":7}`,
			"gen_ai.response.finish_reasons", `{"arrayValue":{"values":[{"stringValue":"tool_calls"}]}}`),
		spanOf("04", agent, 7, 8, "", "gen_ai.operation.name", "chat", "gen_ai.request.model", "m-1",
			"gen_ai.input.messages", `{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Weather in Paris?\"}]},{\"role\":\"tool\",\"parts\":[{\"type\":\"tool_call_response\",\"id\":\"call-1\",\"response\":{\"degrees\":19}}]}]"}`,
			"gen_ai.output.messages", `{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"19 degrees.\"}]}]"}`),
		spanOf("01", "00000000000000aa", 0, 9, "", "gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "forecaster", "gen_ai.conversation.id", "conv-7"),
		spanOf("aa", "", 0, 10, "", "http.route", "/ask"),
	}
}

func TestSpansAreARun(t *testing.T) {
	events := expect.Of(read(t, request(agentSpans()...)+"\n"+request(agentSpans()[0])))(t)
	want := `run_started 
history_append user: Weather in Paris?
model_request m-1 is asked
model_response (30+7 tokens) get_weather {"city":"Paris"}
tool_call get_weather call-1 {"city":"Paris"}
tool_result call-1 ok {"degrees":19}
model_request m-1 is asked, tool: result {"degrees":19}
model_response 19 degrees.
history_append `
	got := brief(events)
	expect.True(t, strings.HasPrefix(got, want) && strings.HasSuffix(got, "\nrun_finished success") && len(events) == 10, "got\n%s\nwant\n%s", got, want)
	for _, e := range events {
		expect.True(t, e.AgentID == "forecaster" && e.SessionID == "conv-7" && e.TraceID == trace && e.RunID == trace+"/0000000000000001", "%s", e.JSON())
		expect.Of(dag.Parse(e.JSON()))(t)
	}
	call := events[4].Body.(*dag.ToolCall)
	expect.True(t, call.Server == "function" && call.RequestedBy.EventID == events[3].EventID, "the call: %+v", call)
	b := events[3].Body.(*dag.ModelResponse)
	expect.True(t, b.FinishReason == "tool_calls" && b.DurationMS == 2000 && b.RequestID == events[2].EventID, "the answer: %+v", b)
	again, _ := read(t, request(agentSpans()...))
	expect.True(t, brief(again) == got && again[5].EventID == events[5].EventID, "read again, they have other ids")
}

func TestWhatSpansLeaveOutOrGetWrong(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // of what is told, or the error
		fails      bool
	}{
		{"no spans", request(), []string{""}, false},
		{"spans of something else", request(spanOf("01", "", 0, 1, "", "http.route", "/")), []string{""}, false},
		{
			"no agent", request(spanOf("01", "", 0, 1, "", "gen_ai.request.model", "m")),
			[]string{"run_started", "model_request m is asked", "model_response", "run_finished success"},
			false,
		},
		{
			"a tool that failed", request(spanOf("01", "", 0, 0, `"code":2,"message":"no such city"`, "error.type", "KeyError", "gen_ai.tool.name", "w")),
			[]string{`tool_call w 0000000000000001 {}`, `tool_result 0000000000000001 error {} KeyError no such city`, "run_finished error"},
			false,
		},
		{
			"a subagent", request(append(agentSpans(), spanOf("07", "0000000000000003", 5, 6, "", "gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "helper"))...),
			[]string{"run_started subagent"},
			false,
		},
		{
			"old names", request(spanOf("01", "", 0, 1, "", "gen_ai.operation.name", "chat", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "hi", "gen_ai.completion.0.content", "ho", "gen_ai.usage.prompt_tokens", `{"intValue":3}`)),
			[]string{"history_append user: hi", "model_request unknown is asked", "model_response (3+0 tokens) ho"},
			false,
		},
		{"its own parent", request(spanOf("01", "0000000000000001", 0, 1, "", "gen_ai.tool.name", "w")), []string{"tool_call w"}, false},
		{"a result that is a text", request(spanOf("01", "", 0, 1, "", "gen_ai.tool.name", "w", "gen_ai.tool.call.result", "fine")), []string{`ok {"output":"fine"}`}, false},
		{"a number that is too large", request(spanOf("01", "", 0, 1, "", "gen_ai.tool.name", "w", "gen_ai.tool.call.arguments", `{"stringValue":"{\"n\":9007199254740993}"}`)), []string{"9007199254740993"}, false},
		{"hidden letters", request(spanOf("01", "", 0, 1, "", "gen_ai.tool.name", `{"stringValue":"w\u001b[31m\u202e"}`)), []string{"tool_call w\ufffd[31m\ufffd"}, false},
		{"nothing", "", []string{"nothing there"}, true},
		{"no JSON", "spans", []string{"request 1"}, true},
		{"cut off", request(agentSpans()...)[:900], []string{"request 1"}, true},
		{"no requests", `{"spans":[]}`, []string{"resourceSpans: missing"}, true},
		{"a list", `[1]`, []string{"want an object with resourceSpans"}, true},
		{"no trace id", strings.ReplaceAll(request(spanOf("01", "", 0, 1, "")), trace, "xyz"), []string{`traceId: "xyz" is not allowed; allowed: 32 hex digits`}, true},
		{"no time", strings.ReplaceAll(request(spanOf("01", "", 0, 1, "")), `"1700000000000000000"`, `"-4"`), []string{"startTimeUnixNano"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := read(t, c.text)
			got := brief(events)
			if err != nil {
				got = err.Error()
			}
			for _, want := range c.want {
				expect.True(t, strings.Contains(got, want) && (err != nil) == c.fails, "got %s\nwant %s", got, want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(request(agentSpans()...))
	f.Add(request(spanOf("01", "0000000000000001", 0, 1, `"code":"STATUS_CODE_ERROR"`, "gen_ai.tool.name", "w")))
	f.Add(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"","startTimeUnixNano":1e99}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_ = genai.Read(t.Context(), strings.NewReader(text), func(e dag.Event) error {
			again, err := dag.Parse(e.JSON())
			expect.Must(t, err == nil && again.EventID == e.EventID, "%s: %v", e.JSON(), err)
			return nil
		})
	})
}
