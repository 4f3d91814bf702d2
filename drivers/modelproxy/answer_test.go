package modelproxy

import (
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestNamesAndIdsOfCallsAreBounded(t *testing.T) {
	long := strings.Repeat("n", 10_000)
	for name, c := range map[string]struct{ path, event string }{
		"chat completions": {"/chat/completions", `{"choices":[{"delta":{"tool_calls":[{"id":%q,"function":{"name":%[1]q}}]}}]}`},
		"responses":        {"/responses", `{"type":"response.output_item.done","item":{"type":"function_call","call_id":%q,"name":%[1]q}}`},
		"messages":         {"/messages", `{"type":"content_block_start","content_block":{"type":"tool_use","id":%q,"name":%[1]q}}`},
		"generateContent":  {"/models/m:generateContent", `{"candidates":[{"content":{"parts":[{"functionCall":{"id":%q,"name":%[1]q}}]}}]}`},
	} {
		f, _ := formatOf(c.path)
		a := newAnswer()
		for range 10 {
			f.event(a, "", fmt.Appendf(nil, c.event, long))
		}
		expect.True(t, len(a.parts) != 0, "%s: no call", name)
		for _, p := range a.parts {
			n, m := len(p.name), len(p.id)
			expect.True(t, n >= maxName && n <= maxName+3 && m >= maxName && m <= maxName+3, "%s: a name of %d bytes and an id of %d", name, n, m)
		}
	}
}
