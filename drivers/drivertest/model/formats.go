package model

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

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

func readResponses(in object) conversation {
	var c conversation
	if text, ok := in["input"].(string); ok {
		c.turns = append(c.turns, turn{text: text})
	}
	for _, item := range in.list("input") {
		switch {
		case strings.HasSuffix(item.text("type"), "_call_output"):
			text := plain(item["output"])
			if text == "" {
				text = string(core.MustEncode(item["output"]))
			}
			c.turns = append(c.turns, turn{text: text, result: true})
		case item.text("role") == "user":
			c.turns = append(c.turns, turn{text: plain(item["content"])})
		}
	}
	for _, t := range in.list("tools") {
		if t.text("type") != "namespace" {
			c.tools = append(c.tools, tool{name: t.text("name"), schema: t.at("parameters")})
			continue
		}
		for _, in := range t.list("tools") { // those of one server, say
			c.tools = append(c.tools, tool{t.text("name"), in.text("name"), in.at("parameters")})
		}
	}
	return c
}

func writeResponses(s *stream, a answer) {
	id := fmt.Sprintf("resp_%d", s.id)
	item := object{
		"type": "message", "id": fmt.Sprintf("msg_%d", s.id), "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}},
	}
	if a.tool != "" {
		item = object{"type": "function_call", "id": fmt.Sprintf("fc_%d", s.id), "call_id": a.call, "name": a.tool, "arguments": string(a.args), "status": "completed"}
		if a.space != "" {
			item["namespace"] = a.space
		}
	}
	response := object{
		"id": id, "object": "response", "created_at": 1, "status": "completed", "model": "scripted", "output": []any{item},
		"usage": object{
			"input_tokens": TokensIn, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": TokensOut, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": TokensIn + TokensOut,
		},
	}
	s.event("response.created", object{"type": "response.created", "response": object{"id": id, "object": "response", "status": "in_progress", "output": []any{}}})
	s.event("response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	for _, p := range a.pieces() {
		s.event("response.output_text.delta", object{
			"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": p,
		})
	}
	s.event("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	s.event("response.completed", object{"type": "response.completed", "response": response})
	s.whole(response)
}

func readMessages(in object) conversation {
	var c conversation
	for _, m := range in.list("messages") {
		if m.text("role") != "user" {
			continue
		}
		for _, p := range m.list("content") {
			if p.text("type") == "tool_result" {
				c.turns = append(c.turns, turn{text: plain(p["content"]), result: true})
			}
		}
		if text := plain(m["content"]); text != "" {
			c.turns = append(c.turns, turn{text: text})
		}
	}
	for _, t := range in.list("tools") {
		c.tools = append(c.tools, tool{name: t.text("name"), schema: t.at("input_schema")})
	}
	return c
}

func writeMessages(s *stream, a answer) {
	usage := object{"input_tokens": TokensIn, "output_tokens": TokensOut}
	message := object{"id": fmt.Sprintf("msg_%d", s.id), "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "usage": usage}
	s.event("message_start", object{"type": "message_start", "message": message})
	block, reason := object{"type": "text", "text": ""}, "end_turn"
	delta, texts := "text_delta", a.pieces()
	key := "text"
	if a.tool != "" {
		block, reason = object{"type": "tool_use", "id": a.call, "name": a.tool, "input": object{}}, "tool_use"
		delta, key, texts = "input_json_delta", "partial_json", (answer{text: string(a.args)}).pieces()
	}
	s.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	for _, p := range texts {
		s.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": delta, key: p}})
	}
	s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	s.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	s.event("message_stop", object{"type": "message_stop"})
	if a.tool != "" {
		block["input"] = core.Raw(a.args)
	} else {
		block["text"] = a.text
	}
	message["content"], message["stop_reason"], message["stop_sequence"] = []any{block}, reason, nil
	s.whole(message)
}

func readGemini(in object) conversation {
	var c conversation
	for _, m := range in.list("contents") {
		if m.text("role") == "model" {
			continue
		}
		for _, p := range m.list("parts") {
			if r := p.at("functionResponse"); r != nil {
				c.turns = append(c.turns, turn{text: string(core.MustEncode(r["response"])), result: true})
			} else if text := p.text("text"); text != "" {
				c.turns = append(c.turns, turn{text: text})
			}
		}
	}
	for _, t := range in.list("tools") {
		for _, f := range t.list("functionDeclarations") {
			schema := f.at("parametersJsonSchema")
			if schema == nil {
				schema = f.at("parameters")
			}
			c.tools = append(c.tools, tool{name: f.text("name"), schema: schema})
		}
	}
	return c
}

func writeGemini(s *stream, a answer) {
	usage := object{"promptTokenCount": TokensIn, "candidatesTokenCount": TokensOut, "totalTokenCount": TokensIn + TokensOut}
	chunk := func(part object, finish bool) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": []any{part}}}
		if finish {
			candidate["finishReason"] = "STOP"
		}
		return object{"candidates": []any{candidate}, "usageMetadata": usage, "modelVersion": "scripted"}
	}
	if a.tool != "" {
		part := object{"functionCall": object{"name": a.tool, "args": core.Raw(a.args)}}
		s.event("", chunk(part, true))
		s.whole(chunk(part, true))
		return
	}
	pieces := a.pieces()
	for i, p := range pieces {
		s.event("", chunk(object{"text": p}, i == len(pieces)-1))
	}
	s.whole(chunk(object{"text": a.text}, true))
}
