package model

import "fmt"

func readChat(in object) conversation {
	var c conversation
	for _, m := range in.list("messages") {
		switch m.text("role") {
		case "user":
			c.turns = append(c.turns, turn{text: plain(m["content"])})
		case "tool":
			c.turns = append(c.turns, turn{text: plain(m["content"]), result: true})
		}
	}
	for _, t := range in.list("tools") {
		f := t.at("function")
		c.tools = append(c.tools, tool{name: f.text("name"), schema: f.at("parameters")})
	}
	c.json = in.at("response_format").text("type") == "json_object"
	return c
}

func writeChat(s *stream, a answer) {
	usage := object{"prompt_tokens": TokensIn, "completion_tokens": TokensOut, "total_tokens": TokensIn + TokensOut}
	chunk := func(delta object, finish any) object {
		return object{
			"id": fmt.Sprintf("chatcmpl-%d", s.id), "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	message, finish := object{"role": "assistant", "content": a.text}, "stop"
	s.event("", chunk(object{"role": "assistant", "content": ""}, nil))
	if a.tool != "" {
		call := func(args string) object {
			return object{"index": 0, "id": a.call, "type": "function", "function": object{"name": a.tool, "arguments": args}}
		}
		finish = "tool_calls"
		message = object{"role": "assistant", "content": nil, "tool_calls": []any{call(string(a.args))}}
		s.event("", chunk(object{"tool_calls": []any{call("")}}, nil))
		for _, p := range (answer{text: string(a.args)}).pieces() {
			s.event("", chunk(object{"tool_calls": []any{object{"index": 0, "function": object{"arguments": p}}}}, nil))
		}
	}
	for _, p := range a.pieces() {
		s.event("", chunk(object{"content": p}, nil))
	}
	s.event("", chunk(object{}, finish))
	last := chunk(object{}, nil)
	last["choices"], last["usage"] = []any{}, usage
	s.event("", last)
	s.event("", "[DONE]")
	s.whole(object{
		"id": fmt.Sprintf("chatcmpl-%d", s.id), "object": "chat.completion", "created": 1, "model": "scripted", "usage": usage,
		"choices": []any{object{"index": 0, "message": message, "finish_reason": finish}},
	})
}
