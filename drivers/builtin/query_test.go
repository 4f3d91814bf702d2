package builtin_test

import (
	"strings"
	"testing"

	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

func TestQueriesGiveAllTheirResults(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct{ query, input, want string }{
		{`.objects[].id`, `{"objects":[{"id":"cup"},{"id":"plate"}]}`, `{"results":["cup","plate"]}`},
		{`.`, `null`, `{"results":[null]}`},
		{`empty`, `{}`, `{"results":[]}`},
		{`.a`, `{"a":12345678901234567890}`, `{"results":[12345678901234567890]}`},
		{`[.[] | select(. > 1)] | add`, `[1,2,3]`, `{"results":[5]}`},
		{`{(.k): .v}`, `{"k":"<x>","v":"\u2028"}`, `{"results":[{"<x>":"` + "\u2028" + `"}]}`},
		{`env, $ENV`, `null`, `{"results":[{},{}]}`},
		{`1, halt, 2`, `null`, `{"results":[1]}`},
	} {
		o := b.run("json-query", map[string]any{"query": c.query, "input": rawValue(c.input)})
		expect.True(t, o.Status == task.Succeeded && string(o.Output) == c.want,
			"%s of %s: %s %s %+v, want %s", c.query, c.input, o.Status, o.Output, o.Error, c.want)
	}
}

func TestHostileQueriesFailAlone(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct{ query, say string }{
		{`range(infinite)`, "more than 1048576 bytes"},
		{`"x" * 2e6`, "more than 1048576 bytes"},
		{`[range(infinite)]`, "memory"},
		{`reduce range(100) as $i ("x"; . + .)`, "memory"},
		{`[limit(100; repeat("x" * 1000000000))] | add`, "memory"},
		{`setpath([500000000]; 1)`, "memory"},
		{`def f: f, f; f`, "memory"},
		{`.a | .b`, "the query failed: expected an object but got"},
		{`error("boom")`, "boom"},
		{`input`, "input"},
		{`.[`, "query: unexpected EOF"},
		{`nosuch(1)`, "query: function not defined: nosuch/1"},
		{`import "a" as a; 1`, "query:"},
		{strings.Repeat("[", 60_000), "query"},
		{strings.Repeat("x", 70_000), "at most 64 KiB"},
		{``, "query"},
	} {
		if celltest.Race && strings.Contains(c.query, "00000") {
			continue // its process can't be held to maxData, which this would exceed by far
		}
		o := b.run("json-query", map[string]any{"query": c.query, "input": []int{1}})
		expect.True(t, o.Status == task.Failed && strings.Contains(o.Error.Message, c.say),
			"%.60s: %s %+v, want a failure with %q", c.query, o.Status, o.Error, c.say)
	}
}

func TestAnEndlessQueryCanBePausedAndCancelled(t *testing.T) {
	w := newBench(t, nil).start("json-query", map[string]any{"query": "last(range(infinite))", "input": nil})
	expect.No(t, w.Pause(t.Context()))
	expect.No(t, w.Resume(t.Context()))
	w.Cancel("timed out")
	expect.From(t, w.Done(), "does not end")
	o := w.Outcome()
	expect.True(t, o.Status == task.Cancelled && o.Error.Message == "timed out", "outcome %+v %+v", o, o.Error)
}

func TestAQuerysParametersAreRead(t *testing.T) {
	b := newBench(t, nil)
	for params, say := range map[string]string{
		`{"query":"."}`:                        "input",
		`{"input":1}`:                          "query",
		`{"query":".","input":1,"slurp":true}`: "slurp: unknown field",
		`{"query":1,"input":1}`:                "params.query",
	} {
		b.fails("json-query", params, "query_failed", say)
	}
	var out, errs strings.Builder
	if code := builtin.Answer(strings.NewReader("hello"), &out, &errs); code != 1 || out.Len() > 0 || !strings.HasPrefix(errs.String(), "json-query: not valid JSON") {
		t.Errorf("answered %q, %q with %d", out.String(), errs.String(), code)
	}
}

// BenchmarkQuery is the cheapest query, with the process that answers it.
func BenchmarkQuery(b *testing.B) {
	deck := newBench(b, nil)
	for b.Loop() {
		if o := deck.run("json-query", `{"query":".x","input":{"x":1}}`); o.Status != task.Succeeded {
			b.Fatalf("outcome %+v", o.Error)
		}
	}
}
