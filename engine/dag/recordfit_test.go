package dag_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/expect"
)

// nest is an object so many levels deep.
func nest(n int) core.Raw {
	return core.Raw(strings.Repeat(`{"a":`, n-1) + `{}` + strings.Repeat(`}`, n-1))
}

func TestDeeplyNestedValuesAreRecorded(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	want := []string{"run_started"}
	for _, n := range []int{core.MaxDepth - 9, core.MaxDepth - 8, core.MaxDepth - 7, core.MaxDepth - 1, core.MaxDepth, core.MaxDepth + 1} {
		r.No(rec.Call(ctx, "acp", "exec", "c", nest(n)))
		r.No(rec.Result(ctx, "c", dag.CallOK, nest(n), nil))
		list := core.Raw(strings.Repeat("[", n) + strings.Repeat("]", n))
		turn := dag.Spoken{Role: dag.RoleTool, Content: []dag.ContentPart{
			{Type: "tool_result", ToolCallID: "c", Output: list}, {Type: "tool_use", ID: "c", Name: "exec", Input: nest(n)},
		}}
		r.No(rec.Asked(ctx, "1", dag.ModelAsk{Model: "m", Params: nest(n), Tools: list, Messages: []dag.Spoken{spoken(dag.RoleUser, "hello"), turn}}))
		r.No(rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallOK, Content: slices.Clone(turn.Content)}))
		want = append(want, "tool_call", "tool_result ok", "model_request", "model_response")
		asked := r.of(rec.RunID(), dag.KindModelRequest)
		b := asked[len(asked)-1].Body.(*dag.ModelRequest)
		expect.True(t, len(b.InputRefs) == 2, "%d levels: inputs %+v", n, b.InputRefs)
	}
	expect.Same(t, r.kinds(rec.RunID()), want)
	called := r.of(rec.RunID(), dag.KindToolCall)
	expect.Is(t, string(called[1].Body.(*dag.ToolCall).Args), string(nest(core.MaxDepth-8)), "cut")
	args := called[4].Body.(*dag.ToolCall).Args
	expect.True(t, strings.HasPrefix(string(args), `{"text":"{\"a\":{`), "not as text: %s", args)
}

func TestWhatJSONMakesLongerStillFits(t *testing.T) {
	many := make([]dag.ContentPart, 1600)
	for i := range many {
		many[i] = dag.ContentPart{Type: "text", Text: strings.Repeat("x", 4096)}
	}
	countless := make([]dag.ContentPart, 10_000)
	for i := range countless {
		countless[i] = dag.ContentPart{Type: "text", Text: "x"}
	}
	for name, parts := range map[string][]dag.ContentPart{
		"control characters":    {{Type: "text", Text: strings.Repeat("\x01", 1<<20)}},
		"quotes":                {{Type: "text", Text: strings.Repeat(`"`, 384<<10)}, {Type: "text", Text: strings.Repeat("\n", 384<<10)}},
		"many parts":            many,
		"countless parts":       countless,
		"numbers":               {{Type: "tool_result", Output: core.Raw("[" + strings.Repeat("1e15,", 70<<10) + "1]")}},
		"JSON of another type":  {{Type: "text", Text: "x", Input: core.Raw(""), Output: core.Raw("{")}},
		"what is no JSON":       {{Type: "tool_use", Input: core.Raw(strings.Repeat("\x01", 380<<10))}},
		"an image of many bits": {{Type: "image_url", URL: strings.Repeat("\x01", 380<<10), Detail: strings.Repeat("\x01", 380<<10)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			rec := r.record()
			ctx := t.Context()
			if len(parts) == 1 && parts[0].Type == "text" {
				r.No(rec.Said(ctx, "main", dag.RoleAssistant, parts[0].Text))
			}
			r.No(rec.Asked(ctx, "1", dag.ModelAsk{Model: "m", Messages: []dag.Spoken{
				spoken(dag.RoleUser, "do evil"), {Role: dag.RoleUser, Content: slices.Clone(parts)},
			}}))
			r.No(rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallError, Content: slices.Clone(parts)}))
			asked, answered := r.of(rec.RunID(), dag.KindModelRequest), r.of(rec.RunID(), dag.KindModelResponse)
			expect.Must(t, len(asked) == 1 && len(answered) == 1 && len(asked[0].Body.(*dag.ModelRequest).InputRefs) == 2,
				"%d requests, %d answers", len(asked), len(answered))
			n := expect.Of(r.Node(ctx, acme, dag.NodeRef{Type: dag.TypeMessage, ID: asked[0].Body.(*dag.ModelRequest).InputRefs[1].Message}))(r.T)
			m := n.Versions[0].Node.Body.(*dag.Message)
			if last := m.Content[len(m.Content)-1]; len(parts) > 2 && !strings.Contains(last.Text, "more parts, ") {
				t.Errorf("of %d parts %d are there, and %q", len(parts), len(m.Content), last.Text)
			}
			r.No(r.finish(rec, true))
		})
	}
}

func TestAllAtOnceStillFits(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	hostile := core.Raw(strings.Repeat("\x01", 1<<20))
	r.No(rec.Call(ctx, "acp", "exec", "c", hostile))
	r.No(rec.Substitute(ctx, "c", hostile, string(hostile)))
	r.No(rec.Result(ctx, "c", dag.CallError, hostile, &dag.Fault{Message: string(hostile)}))
	spec := core.MustEncode([]string{strings.Repeat(`"`, 255<<10)})
	said := spoken(dag.RoleUser, strings.Repeat("\x01", 120<<10))
	for range 100 {
		said.Content = append(said.Content, said.Content[0])
	}
	r.No(rec.Asked(ctx, "1", dag.ModelAsk{Model: "m", Params: hostile, Tools: spec, Messages: []dag.Spoken{said}}))
	r.No(rec.Answered(ctx, "1", dag.ModelAnswer{Status: dag.CallError, Content: said.Content, Error: &dag.Fault{Message: string(hostile)}}))
	r.No(r.finish(rec, true))
	want := []string{
		"run_started", "tool_call", "tool_call", "substitution", "tool_result error", "model_request", "model_response", "run_finished",
	}
	expect.Same(t, r.kinds(rec.RunID()), want)
	b := r.of(rec.RunID(), dag.KindModelRequest)[0].Body.(*dag.ModelRequest)
	expect.True(t, string(b.ToolsSpec) == string(spec) && len(b.InputRefs) == 1, "%d bytes of tools, %v", len(b.ToolsSpec), b.InputRefs)
}

func TestWhatIsCutTellsItsSizeAndDigest(t *testing.T) {
	r := newRig(t)
	rec := r.record()
	ctx := t.Context()
	text := strings.Repeat("x", 3<<20)
	r.No(rec.Said(ctx, "main", dag.RoleAssistant, text))
	r.No(r.finish(rec, true))
	m := r.of(rec.RunID(), dag.KindHistoryAppend)[0].Nodes[0].Body.(*dag.Message)
	want := fmt.Sprintf("… (%d bytes, sha256 %x)", len(text), sha256.Sum256([]byte(text)))
	if got := m.Content[0].Text; got != text[:1<<20]+want {
		t.Errorf("%d bytes, %s", len(got), got[len(got)-len(want):])
	}
}
