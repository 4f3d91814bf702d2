package command

import (
	"strings"

	"swarmdeck/engine/core"
)

// past are the verbs of commands that are no operations yet, as they read once
// done.
var past = map[string]string{
	"cancel": "cancelled", "create": "created", "delete": "deleted", "set": "set", "revoke": "revoked", "pause": "asked to pause:", "resume": "resumed",
	"start": "started", "stop": "stopped", "retry": "queued again:", "assign": "gave work to",
}

// reported are the fields of a record that name it, by noun.
var reported = map[string]string{
	"agent": "name",
}

// sentence tells in one line what a change by a command that is no operation
// came to, from the record that it gives.
func (c *call) sentence(v any) string {
	path := commandPath(c.cmd)
	noun, verb, _ := strings.Cut(path, " ")
	data, err := core.Encode(v)
	var rec map[string]any
	if err != nil || core.Decode(data, &rec) != nil {
		return "done: " + path
	}
	id, _ := rec[reported[noun]].(string)
	if args := c.flags.Args(); id == "" && len(args) > 0 {
		id = args[len(args)-1]
	}
	done, known := past[verb]
	if !known {
		return strings.TrimSpace("done: " + path + " " + id)
	}
	return done + " " + noun + " " + id
}
