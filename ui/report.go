package ui

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/ui/command"
)

// past are the verbs of the command tree as they read once done. Pausing and
// stopping are asked for: the screen shows when they are in effect.
var past = map[string]string{
	"approve": "approved", "deny": "denied", "defer": "put off", "escalate": "escalated", "dispatch": "dispatched", "cancel": "cancelled",
	"retry": "queued again:", "undo": "took back", "pause": "asked to pause:", "resume": "resumed", "start": "started", "stop": "stopped",
	"restart": "restarted", "create": "created", "delete": "deleted", "assign": "gave work to", "set": "set", "revoke": "revoked",
	"invoke": "runs the skill:", "resend": "sent again as", "publish": "published", "reply": "answered with", "load": "loaded", "unload": "unloaded",
	"fork": "forked to", "propose": "proposed", "activate": "activated", "withdraw": "withdrew", "restore": "restored", "test": "tested", "backtest": "backtested",
}

// reported are the fields of a record that name it, by noun.
var reported = map[string]string{
	"approval": "approval_id", "task": "task_id", "session": "session_id", "agent": "name", "budget": "subject", "tenant": "tenant_id",
	"subagent": "agent_id", "message": "message_id", "policy": "policy_id",
}

// machine asks a changing command for a record instead of a table, unless the
// operator has asked for a form.
func machine(line []string, effect command.Effect) []string {
	if effect == command.Reads {
		return line
	}
	end := slices.Index(line, "--") // what follows belongs to another command
	if end < 0 {
		end = len(line)
	}
	for _, w := range line[:end] {
		if w == "-o" || w == "--output" || strings.HasPrefix(w, "--output=") || strings.HasPrefix(w, "-o") && len(w) > 2 {
			return line
		}
	}
	return slices.Insert(slices.Clone(line), end, "-o", "json")
}

// sentence says in one line what a changing command came to, from the record
// that it printed.
func sentence(line []string, path, out string) string {
	noun, verb, _ := strings.Cut(path, " ")
	switch path {
	case "estop on":
		return "emergency stop: everything is told to freeze"
	case "estop off":
		return "thawed: work goes on"
	case "skill invoke", "bus resend", "bus publish", "bus reply", "dag fork":
		noun = map[string]string{"skill": "subagent", "bus": "message", "dag": "agent"}[noun]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	var rec map[string]any
	if err := json.Unmarshal([]byte(first), &rec); err != nil {
		if first != "" {
			return first
		}
		return "done: " + path
	}
	id, _ := rec[reported[noun]].(string)
	if noun == "policy" && (verb == "activate" || verb == "restore") && rec["status"] != "active" {
		return "you are the first of two: another person must " + verb + " policy " + id + " too"
	}
	if id == "" {
		id = lastWord(line)
	}
	done, ok := past[verb]
	if !ok {
		return "done: " + path + " " + id
	}
	text := done + " " + noun + " " + id
	if task, _ := rec["task_id"].(string); path == "agent assign" && task != "" {
		text = "gave agent " + lastName(line) + " task " + task
	}
	for _, what := range []string{"intent", "title"} {
		if s, _ := rec[what].(string); s != "" {
			text += ": " + s
			break
		}
	}
	if waits, _ := rec["waiting"].(string); waits == "approval" && noun == "task" && verb != "cancel" {
		text += " (waits for approval)"
	}
	return text
}

// lastName is the first word after the command's own two.
func lastName(line []string) string {
	if len(line) > 2 {
		return line[2]
	}
	return ""
}
