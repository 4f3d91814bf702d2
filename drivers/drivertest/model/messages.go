package model

import (
	"fmt"

	"swarmdeck/engine/core"
)

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
