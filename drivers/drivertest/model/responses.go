package model

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

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
