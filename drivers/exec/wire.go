package exec

import (
	"cmp"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/task"
)

// wire is how a coding agent prints what it does when its command is run for one
// prompt: that comes on its standard input, up to the end of it, and the end of the
// process is the end of the turn.
type wire struct {
	command string // that prints so
	// pages says that it may print one document of several lines, the first { and the last }.
	pages bool
	// resume are the words after the command that take up a conversation.
	resume func(id string) []string
	gone   string // is in its error when there is none of that id
	// read takes one JSON object that was printed; false for one that is not known.
	read func(h *hearing, event core.Raw) bool
}

// wires is constant: the option wire names one of them.
var wires = map[string]*wire{
	"claude": {
		command: "claude -p --output-format stream-json --verbose",
		resume:  func(id string) []string { return []string{"--resume", id} },
		gone:    "No conversation found",
		read:    readClaude,
	},
	"codex": {
		command: "codex exec --json",
		resume:  func(id string) []string { return []string{"resume", id, "-"} },
		gone:    "no rollout found",
		read:    readCodex,
	},
	"gemini": {
		command: "gemini -o stream-json",
		pages:   true, // -o json
		resume:  func(id string) []string { return []string{"--resume", id} },
		gone:    "Error resuming session",
		read:    readGemini,
	},
}

// conversation is what is remembered of what the agent talks of.
type conversation struct {
	Session string `json:"session"` // the program's own id of it, "" for none
	// Spent is what the program told of last as its sum, of those that tell sums.
	Spent fleet.Split `json:"spent,omitzero"`
}

// sessionPattern is how a program may call a conversation: it becomes a word of its command,
// and so begins with no sign.
var sessionPattern = core.Pattern(`^[0-9A-Za-z][0-9A-Za-z_.-]{0,127}$`)

// exitedOnWire makes the outcome of a turn whose process on a wire has ended. It reports
// again when another is to run: the conversation is gone, or a person has said something
// meanwhile.
func (a *agent) exitedOnWire(t *turn, s *session) (out task.Outcome, again bool) {
	h := s.heard
	h.end()
	t.mu.Lock()
	warning := t.warning
	t.warning = ""
	t.mu.Unlock()
	out = h.outcome(s.Exit, warning)
	running := t.Ending() == keeper.Running
	a.Mu.Lock()
	// Without the words for it the program may have done something: then only the next task
	// begins anew.
	failed := running && a.talk.Session != "" && !h.begun && out.Error != nil && (out.Error.Code == "agent_exit" || out.Error.Code == "agent_failed")
	lost := failed && strings.Contains(out.Error.Message, h.gone)
	switch {
	case failed:
		a.talk = conversation{}
	case h.talk.Session != "":
		a.talk = h.talk
	}
	if !a.fresh {
		keeper.Remember(a.memory, a.talk)
	}
	switch {
	case running && out.Error == nil:
		a.Keep.Well()
	case running && out.Error.Retryable && (out.Error.Code == "agent_login" || out.Error.Code == "agent_limit"):
		out.Unsent = !h.didAct()
		a.Keep.Needs(out.Error.Message, true)
	}
	a.Mu.Unlock()
	if lost {
		t.emit(fleet.Event{Type: "log", Level: "WARN", Text: "the earlier conversation could not be taken up, a new one begins: " + out.Error.Message})
		return out, true
	}
	if !running || out.Status != task.Succeeded || t.Prompt.Next == nil {
		return t.OnPurpose(out), false
	}
	more, err := t.Prompt.Next(t.Context)
	if err != nil { // it waits on, for the next task
		t.emit(fleet.Event{Type: "log", Level: "WARN", Text: "what the agent was to be told could not be read: " + err.Error()})
	}
	if more == nil {
		return t.OnPurpose(out), false
	}
	t.message, t.uri = more.Text, more.URI
	return out, t.emit(fleet.Event{Type: "prompt", Text: more.Text})
}

// failedFor makes the outcome of a turn of which the program told that it failed, or that
// ended with this reason. code is for those of no kind of their own.
func failedFor(code, hint, reason string) task.Outcome {
	if lacks, says := keeper.Lacking(hint + " " + reason); lacks != "" {
		return keeper.Failure(lacks, says+reason, true)
	}
	if strings.Contains(hint+reason, "max_turns") || strings.Contains(hint+reason, "max_budget") { // of this turn alone
		return keeper.Failure("agent_limit", "the agent is at a limit: "+reason, false)
	}
	return keeper.Failure(code, reason, false)
}

// outcome is what the turn came to. What the program told counts, whatever its exit
// status; warning is the last line of its standard error.
func (h *hearing) outcome(exit cell.Exit, warning string) task.Outcome {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.failed != "":
		return failedFor("agent_failed", h.hint, h.failed)
	case h.finished:
		return task.Outcome{Status: task.Succeeded, Text: h.final, Output: core.MustEncode(map[string]string{"text": h.final})}
	}
	reason := unfinished(exit, cmp.Or(h.complaint, warning))
	if out, died := keeper.Died(exit, reason); died {
		return out
	}
	if exit.Code == 0 && h.complaint == "" {
		return keeper.Failure("agent_protocol", reason+"; its wire is read as `"+h.command+"` prints it", false)
	}
	return failedFor("agent_exit", h.hint, reason)
}
