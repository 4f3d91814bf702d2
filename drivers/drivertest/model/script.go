package model

import (
	"fmt"
	"strings"

	"swarmdeck/engine/core"
)

// object is a decoded JSON object. Its readers give zero values for what is
// not there.
type object map[string]any

func asObject(v any) object {
	switch m := v.(type) {
	case object:
		return m
	case map[string]any:
		return m
	}
	return nil
}

func (o object) at(key string) object { return asObject(o[key]) }

func (o object) text(key string) string {
	s, _ := o[key].(string)
	return s
}

func (o object) list(key string) []object {
	items, _ := o[key].([]any)
	return core.Map(items, asObject)
}

// plain joins the texts of a content that is a string or a list of parts, each on lines of
// its own.
func plain(content any) string {
	switch v := content.(type) {
	case string:
		return v
	case []any:
		var texts []string
		for _, p := range v {
			if text := asObject(p).text("text"); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

// conversation is what all formats have in common.
type conversation struct {
	turns []turn // user texts and tool results, oldest first
	tools []tool
	json  bool // the answer is to be JSON

	escalate bool
}

type turn struct {
	text   string
	result bool // a tool's result rather than what the user said
}

type tool struct {
	space  string // namespace that the name is in, "" for most
	name   string
	schema object
}

// answer is a text, or a tool call when tool is set.
type answer struct {
	text  string
	tool  string
	space string // of the tool
	args  core.Raw
	call  string // the call's id
}

// pieces breaks the text up so that its reader has to join it.
func (a answer) pieces() []string {
	var out []string
	rest := []rune(a.text)
	for len(rest) > 0 {
		n := min(12, len(rest))
		out = append(out, string(rest[:n]))
		rest = rest[n:]
	}
	return out
}

// decide plays the script of the newest user text that has one.
func (c conversation) decide(n int) answer {
	for i := len(c.turns) - 1; i >= 0; i-- {
		if c.turns[i].result {
			continue
		}
		orders := script(c.turns[i].text)
		if len(orders) == 0 {
			continue
		}
		for _, later := range c.turns[i+1:] {
			if !later.result {
				continue
			}
			if orders = orders[1:]; len(orders) == 0 {
				return answer{text: "FINAL: the tool said: " + head(later.text, 300)}
			}
		}
		return c.act(n, orders[0].verb, orders[0].rest)
	}
	if c.json {
		return answer{text: `{"reasoning":"scripted","next_speaker":"user","title":"scripted"}`}
	}
	return answer{text: "Nothing to do."}
}

// order is one line of a script.
type order struct{ verb, rest string }

// script finds the last line of a text that is an order, with those that
// follow after it.
func script(text string) (all []order) {
	for line := range strings.Lines(strings.ReplaceAll(text, " THEN ", "\nTHEN ")) {
		line, then := strings.CutPrefix(strings.TrimSpace(line), "THEN ")
		for _, v := range []string{"RUN", "WRITE", "CALL", "SAY"} {
			rest, found := strings.CutPrefix(line, v+": ")
			if found && !then {
				all = nil
			}
			if found && (!then || len(all) > 0) {
				all = append(all, order{v, rest})
			}
		}
	}
	return all
}

func (c conversation) act(n int, verb, rest string) answer {
	first, second, _ := strings.Cut(rest, " ")
	a := answer{call: fmt.Sprintf("call_%d", n)}
	switch verb {
	case "SAY":
		return answer{text: rest}
	case "CALL":
		t, ok := c.find(first)
		if !ok {
			return answer{text: "No tool " + first + " is offered."}
		}
		a.tool, a.space, a.args = t.name, t.space, core.Raw(second)
		return a
	case "RUN":
		t, ok := c.find("shell", "bash", "exec_command", "run_shell_command", "local_shell", "terminal", "exec")
		if !ok {
			return answer{text: "No shell tool is offered."}
		}
		a.tool, a.space, a.args = t.name, t.space, t.fill(rest, "command", "cmd")
		if c.escalate {
			var args object
			_ = core.DecodeStored(a.args, &args)
			args["sandbox_permissions"], args["justification"] = "require_escalated", "scripted"
			a.args = core.MustEncode(args)
		}
		return a
	default:
		t, ok := c.find("write_file", "write", "create_file", "edit")
		if !ok {
			return answer{text: "No writing tool is offered."}
		}
		a.tool, a.space, a.args = t.name, t.space, t.fill(first, "file_path", "filePath", "path")
		var args object
		_ = core.DecodeStored(a.args, &args)
		args["content"] = second
		a.args = core.MustEncode(args)
		return a
	}
}

// find is the first offered tool with one of the names, else the first whose
// name holds one.
func (c conversation) find(names ...string) (tool, bool) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.Contains} {
		for _, name := range names {
			for _, t := range c.tools {
				if same(strings.ToLower(t.name), name) {
					return t, true
				}
			}
		}
	}
	return tool{}, false
}

// fill makes arguments for a schema: the value under the first of the names
// that the schema has, every other required member by its type.
func (t tool) fill(value string, names ...string) core.Raw {
	args, props := object{}, t.schema.at("properties")
	for _, name := range names {
		p := asObject(props[name])
		if p == nil {
			continue
		}
		args[name] = value
		if fmt.Sprint(p["type"]) == "array" || strings.EqualFold(p.text("type"), "array") {
			args[name] = []string{"bash", "-lc", value}
		}
		break
	}
	required, _ := t.schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, there := args[name]; there {
			continue
		}
		switch strings.ToLower(asObject(props[name]).text("type")) {
		case "boolean":
			args[name] = false
		case "number", "integer":
			args[name] = 10000
		case "array":
			args[name] = []any{}
		default:
			args[name] = "scripted"
		}
	}
	return core.MustEncode(args)
}

func head(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
