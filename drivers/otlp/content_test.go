package otlp

import (
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// turnOf is a turn in which a model is asked, answers with a call, and the call
// is made.
func turnOf(t *testing.T, long string) (dag.RunState, []dag.Event) {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	x := dag.NewTranscript("run-1", dag.RunInfo{AgentID: "ada", TraceID: trace}, at)
	x.Asked("1", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{{Role: dag.RoleUser, Content: []dag.ContentPart{{Type: "text", Text: "secret question" + long}}}}})
	x.At(at.Add(time.Second))
	x.Answered("1", dag.ModelAnswer{
		Status: dag.CallOK, FinishReason: "tool_calls", Usage: &dag.Usage{PromptTokens: 9, CompletionTokens: 4, TotalTokens: 13, CachedTokens: 5},
		Content: []dag.ContentPart{{Type: "reasoning", Text: "secret thought"}, {Type: "tool_use", ID: "c-1", Name: "sh", Input: core.Raw(`{"cmd":"secret"}`)}},
	})
	x.Called("local", "sh", "c-1", core.Raw(`{"cmd":"secret"}`))
	x.Returned("c-1", dag.CallOK, core.Raw(`{"out":"secret"}`), nil)
	events := expect.Of(x.Finish(true))(t)
	return dag.RunState{RunID: "run-1", AgentID: "ada", TraceID: trace, StartedAt: dag.At(at), FinishedAt: dag.At(at.Add(2 * time.Second))}, events
}

func attributes(t *testing.T, content bool, long string) map[string]map[string]*commonpb.AnyValue {
	t.Helper()
	run, events := turnOf(t, long)
	d := &deriver{tenant: "t_acme", content: content}
	open := calls{d: d, run: &run, tools: map[string]dag.Event{}, models: map[string]dag.Event{}}
	for _, e := range events {
		open.take(e)
	}
	open.cut()
	all := map[string]map[string]*commonpb.AnyValue{}
	for _, s := range d.spans {
		all[s.Name] = map[string]*commonpb.AnyValue{}
		for _, a := range s.Attributes {
			all[s.Name][a.Key] = a.Value
		}
	}
	return all
}

func TestSpansCarryTheAttributesOfGenerativeAI(t *testing.T) {
	got := attributes(t, false, "")
	for span, want := range map[string]map[string]string{
		"chat m": {
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.agent.name": "ada", "gen_ai.conversation.id": "run-1",
			"gen_ai.usage.input_tokens": "9", "gen_ai.usage.output_tokens": "4", "gen_ai.usage.cache_read.input_tokens": "5",
			"gen_ai.response.finish_reasons": "tool_calls",
		},
		"execute_tool sh": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sh", "gen_ai.tool.call.id": "c-1", "gen_ai.agent.name": "ada",
			"gen_ai.conversation.id": "run-1", "swarmdeck.tool.server": "local",
		},
	} {
		var names []string
		for name, v := range got[span] {
			names = append(names, name)
			expect.True(t, strings.Contains(v.String(), want[name]) && want[name] != "", "%s: %s is %s, want %q", span, name, v, want[name])
		}
		if len(names) != len(want) {
			slices.Sort(names)
			t.Errorf("%s has %v", span, names)
		}
	}
}

func TestContentIsToldOnlyWhereItIsAskedFor(t *testing.T) {
	for span, attrs := range attributes(t, false, "") {
		for name, v := range attrs {
			expect.True(t, !strings.Contains(v.String(), "secret"), "%s: %s has content", span, name)
		}
	}
	got := attributes(t, true, "")
	for span, want := range map[string]map[string]string{
		"chat m": {
			"gen_ai.input.messages":  `[{"role":"user","parts":[{"type":"text","content":"secret question"}]}]`,
			"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"tool_call","id":"c-1","name":"sh","arguments":{"cmd":"secret"}}],"finish_reason":"tool_calls"},{"role":"assistant","parts":[{"type":"reasoning","content":"secret thought"}],"finish_reason":"tool_calls"}]`,
		},
		"execute_tool sh": {"gen_ai.tool.call.arguments": `{"cmd":"secret"}`, "gen_ai.tool.call.result": `{"out":"secret"}`},
	} {
		for name, text := range want {
			expect.True(t, got[span][name].GetStringValue() == text, "%s: %s is %s, want %s", span, name, got[span][name], text)
		}
	}
	long := attributes(t, true, strings.Repeat("x", 1<<20))["chat m"]["gen_ai.input.messages"].GetStringValue()
	expect.True(t, len(long) <= maxPart+200 && len(long) >= maxPart, "a long message has %d bytes", len(long))
}

func TestTheSettingForContent(t *testing.T) {
	const endpoint, name = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	for value, want := range map[string]bool{"": false, "false": false, "NO_CONTENT": false, "EVENT_ONLY": false, "true": true, "True": true, "SPAN_ONLY": true, "span_and_event": true} {
		s, err := FromEnvironment(getenv(endpoint, "http://x", name, value))
		expect.True(t, err == nil && s.Content == want, "%q: %+v %v", value, s, err)
	}
	expect.Says(t, expect.Fault(FromEnvironment(getenv(endpoint, "http://x", name, "yes"))), name)
}
