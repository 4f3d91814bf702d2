package genai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
)

// traces are the spans of a file.
type traces struct {
	spans map[string]*span // by trace and span
	order []*span
}

// maxAbove bounds how far above a span its agent is looked for.
const maxAbove = 1000

// operation is what a span is about: agent, model, tool, or nothing here.
func (s *span) operation() string {
	switch op := s.text("gen_ai.operation.name"); op {
	case "invoke_agent":
		return "agent"
	case "execute_tool":
		return "tool"
	case "chat", "text_completion", "generate_content":
		return "model"
	case "":
		if s.text("gen_ai.tool.name") != "" {
			return "tool"
		}
		if s.text("gen_ai.request.model", "gen_ai.response.model") != "" {
			return "model"
		}
	}
	return ""
}

// above is the span that one is below, nil when it is not here.
func (t *traces) above(s *span) *span {
	if s.parent == "" {
		return nil
	}
	return t.spans[s.trace+s.parent]
}

// agentOf is the invoke_agent at a span or above it.
func (t *traces) agentOf(s *span) *span {
	for range maxAbove {
		if s == nil || s.operation() == "agent" {
			return s
		}
		s = t.above(s)
	}
	return nil
}

// run is what one agent did in one go.
type run struct {
	id    string
	agent *span // nil of a trace that names none
	spans []*span
	below bool // another agent called it
}

// tell makes the events of all runs, the run that began first before the others.
func (t *traces) tell(each func(dag.Event) error) error {
	runs := map[string]*run{}
	var order []*run
	slices.SortStableFunc(t.order, func(a, b *span) int { return a.start.Compare(b.start) })
	for _, s := range t.order {
		if s.operation() == "" {
			continue
		}
		owner, id := t.agentOf(s), s.trace
		if owner != nil {
			id += "/" + owner.id
		}
		r := runs[id]
		if r == nil {
			r = &run{id: id, agent: owner}
			if owner != nil {
				r.below = t.agentOf(t.above(owner)) != nil
			}
			runs[id] = r
			order = append(order, r)
		}
		r.spans = append(r.spans, s)
	}
	for _, r := range order {
		events, err := r.events()
		if err != nil {
			return fmt.Errorf("trace %s: %w", r.id, err)
		}
		for _, e := range events {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// first is the first text that one of a run's spans has, its agent's own before.
func (r *run) first(keys ...string) string {
	if r.agent != nil {
		if text := r.agent.text(keys...); text != "" {
			return text
		}
	}
	for _, s := range r.spans {
		if text := s.text(keys...); text != "" {
			return text
		}
	}
	return ""
}

// happening is a beginning or an end of a span.
type happening struct {
	at    time.Time
	class int // at one time ends come first, but for spans that take none
	s     *span
	ends  bool
}

func (r *run) events() ([]dag.Event, error) {
	info := dag.RunInfo{
		AgentID: cmp.Or(r.first("gen_ai.agent.name", "gen_ai.agent.id"), r.spans[0].service, "otel"),
		TraceID: r.spans[0].trace, SessionID: r.first("gen_ai.conversation.id"),
	}
	if r.below {
		info.Reason = "subagent"
	}
	begin, all, failed := r.spans[0].start, []happening{}, false
	for _, s := range r.spans {
		failed = failed || s.failed && (r.agent == nil || s == r.agent)
		class := 0
		if !s.end.After(s.start) {
			class = 2
		}
		all = append(all, happening{s.start, 1, s, false}, happening{s.end, class, s, true})
	}
	slices.SortStableFunc(all, func(a, b happening) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.class, b.class)) })
	w := &writer{Transcript: dag.NewTranscript(r.id, info, begin), said: map[string]bool{}}
	for _, h := range all {
		w.At(h.at)
		switch op := h.s.operation(); {
		case op == "model" && h.ends:
			w.answered(h.s)
		case op == "model":
			w.asked(h.s)
		case op == "tool" && h.ends:
			w.returned(h.s)
		case op == "tool":
			w.Called(cmp.Or(h.s.text("gen_ai.tool.type"), "tool"), cmp.Or(h.s.text("gen_ai.tool.name"), "unknown"), w.call(h.s), h.s.attrs["gen_ai.tool.call.arguments"].raw())
		case !h.ends:
			w.hears(messages(h.s.attrs["gen_ai.input.messages"]))
		}
	}
	w.At(all[len(all)-1].at)
	return w.Finish(!failed)
}

// writer tells what spans say in a transcript.
type writer struct {
	*dag.Transcript
	said map[string]bool // messages that the conversation has
}

// call is a call's id in its run: frameworks may use one twice.
func (w *writer) call(s *span) string { return cmp.Or(s.text("gen_ai.tool.call.id"), s.id) }

// hears adds what an agent was told to the conversation, once.
func (w *writer) hears(all []dag.Spoken) {
	for _, m := range all {
		key := string(m.Role) + string(core.MustEncode(m.Content))
		if (m.Role == dag.RoleUser || m.Role == dag.RoleSystem) && !w.said[key] {
			w.said[key] = true
			w.Said(m)
		}
	}
}

func (w *writer) asked(s *span) {
	told := append(instructions(s.attrs["gen_ai.system_instructions"]), messages(s.attrs["gen_ai.input.messages"])...)
	if len(told) == 0 {
		told = numbered(s, "gen_ai.prompt.")
	}
	w.hears(told)
	params := map[string]any{}
	for key, v := range s.attrs {
		if name, is := strings.CutPrefix(key, "gen_ai.request."); is && name != "model" {
			params[name] = v.json()
		}
	}
	raw, err := core.Encode(params)
	if err != nil { // a number that JSON has none for
		raw = nil
	}
	w.Asked(s.id, dag.ModelAsk{
		Model: s.text("gen_ai.request.model", "gen_ai.response.model"), Params: raw,
		Tools: toolsOf(s.attrs["gen_ai.tool.definitions"]), Messages: told,
	})
}

func toolsOf(v value) core.Raw {
	if raw := v.raw(); raw.Kind() == '[' || raw.Kind() == '{' {
		return raw
	}
	return nil
}

func (w *writer) answered(s *span) {
	var content []dag.ContentPart
	out := messages(s.attrs["gen_ai.output.messages"])
	if len(out) == 0 {
		out = numbered(s, "gen_ai.completion.")
	}
	for _, m := range out {
		content = append(content, m.Content...)
	}
	a := dag.ModelAnswer{Status: dag.CallOK, Content: content, FinishReason: s.text("gen_ai.response.finish_reasons")}
	in, did := s.count("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"), s.count("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
	if in > 0 || did > 0 {
		a.Usage = &dag.Usage{PromptTokens: in, CompletionTokens: did, TotalTokens: in + did, CachedTokens: s.count("gen_ai.usage.cache_read.input_tokens")}
	}
	if s.failed {
		a.Status, a.Error = dag.CallError, s.fault()
	}
	w.Answered(s.id, a)
}

func (w *writer) returned(s *span) {
	status, fault := dag.CallOK, (*dag.Fault)(nil)
	if s.failed {
		status, fault = dag.CallError, s.fault()
		if strings.Contains(strings.ToLower(fault.Code), "timeout") {
			status = dag.CallTimeout
		}
	}
	result := s.attrs["gen_ai.tool.call.result"].raw()
	if len(result) > 0 && result.Kind() != '{' {
		result = core.MustEncode(map[string]core.Raw{"output": result})
	}
	w.Returned(w.call(s), status, result, fault)
}

func (s *span) fault() *dag.Fault {
	return &dag.Fault{Code: cmp.Or(s.text("error.type"), "error"), Message: cmp.Or(s.message, s.text("exception.message"))}
}
