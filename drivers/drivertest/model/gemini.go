package model

import "swarmdeck/engine/core"

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
