package modelproxy

import (
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

var paths = []string{"/chat/completions", "/responses", "/messages", "/v1beta/models/m:streamGenerateContent"}

func sound(t *testing.T, c fleet.ModelCall) {
	t.Helper()
	blot(&c, replacer([]string{"secret-secret"}))
	for _, v := range []core.Raw{c.Params, c.Tools} {
		expect.True(t, len(v) == 0 || v.IsValid(), "%q is no JSON", v)
	}
	for _, m := range c.Messages {
		if m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool" {
			t.Errorf("role %q", m.Role)
		}
		for _, p := range m.Content {
			if p.Type == "tool_use" && (p.Input.Kind() != '{' || !p.Input.IsValid()) {
				t.Errorf("arguments %q", p.Input)
			}
			expect.True(t, p.Type != "tool_result" || p.Output.IsValid(), "output %q", p.Output)
		}
	}
}

func FuzzAsk(f *testing.F) {
	for i, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"x","arguments":"{"}}]},{"role":"tool","tool_call_id":"1","content":"y"}],"tools":[{"authorization":"z"}]}`,
		`{"model":"m","input":[{"type":"reasoning","summary":[{"text":"hm"}]},{"type":"local_shell_call","action":{"command":["ls"]}},{"type":"function_call_output","call_id":"1","output":"x"},"odd"]}`,
		`{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"x"}],"is_error":true},{"type":"image","source":{"data":"AA"}}]}]}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"x"}},{"thought":true,"text":"hm"}]},{"parts":[{"functionResponse":{"name":"x"}},{"inlineData":{"data":"AA"}},{"fileData":{}}]}]}`,
	} {
		f.Add(i, []byte(body))
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		path := paths[max(0, i)%len(paths)]
		format, _ := formatOf(path)
		c, err := format.ask(path, body)
		if err == nil {
			sound(t, c)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for i, body := range []string{
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"x\",\"arguments\":\"{\"}}]}}],\"usage\":{\"prompt_tokens\":-1}}\r\n\r\ndata: [DONE]\n\n",
		"event: x\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"name\":\"x\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{}]}}\n\n",
		"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\"}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"partial_json\":\"{\"}}\n\n",
		"data: [{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{}},{\"text\":\"x\"}]},\"finishReason\":\"STOP\"}]}]\n\n",
	} {
		f.Add(i, 3, []byte(body))
	}
	f.Fuzz(func(t *testing.T, i, piece int, stream []byte) {
		format, _ := formatOf(paths[max(0, i)%len(paths)])
		whole, a, b := newAnswer(), newAnswer(), newAnswer()
		format.whole(whole, stream)
		sound(t, whole.call())
		atOnce := (&hold{of: New().run()}).events(func(name string, data []byte) { format.event(a, name, data) }, a.miss)
		atOnce.Write(stream)
		atOnce.Close()
		sound(t, a.call())
		inPieces := (&hold{of: New().run()}).events(func(name string, data []byte) { format.event(b, name, data) }, b.miss)
		for n := max(1, piece%64); len(stream) > 0; stream = stream[min(n, len(stream)):] {
			inPieces.Write(stream[:min(n, len(stream))])
		}
		inPieces.Close()
		x, y := core.MustEncode(a.call().Messages), core.MustEncode(b.call().Messages)
		expect.True(t, string(x) == string(y) && a.done == b.done, "in pieces it says %s, at once %s", y, x)
		expect.True(t, a.size <= maxText && len(a.parts) <= maxParts, "%d bytes in %d parts", a.size, len(a.parts))
	})
}

func FuzzQuery(f *testing.F) {
	g := &grant{values: map[string]string{"placeholder": "the value"}}
	for _, raw := range []string{"key=placeholder", "a=b&KEY=placeholder;c", "k%65y=%70laceholder&key", "key=other", "%zz=1&key=%zz", "key=placeholder=", "text=placeholder"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		out, ok := g.query(raw)
		if !ok {
			expect.Is(t, out, "", raw, "is refused as")
			return
		}
		again, ok := g.query(strings.ReplaceAll(out, "the+value", "placeholder"))
		expect.True(t, ok && again == out, "%q is %q, and then %q", raw, out, again)
		expect.True(t, strings.Contains(out, "the+value") || out == raw, "%q was changed to %q", raw, out)
	})
}
