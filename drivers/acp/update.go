package acp

import (
	"time"

	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// update is a session update. Its kind is read first; the other members only
// mean something together with it.
type update struct {
	Kind          string         `json:"sessionUpdate"`
	Content       core.Raw       `json:"content"` // a block, or a tool call's list
	MessageID     string         `json:"messageId"`
	Entries       []planEntry    `json:"entries"`
	CurrentModeID string         `json:"currentModeId"`
	ConfigOptions []configOption `json:"configOptions"`
	Commands      []command      `json:"availableCommands"`
	Used          int64          `json:"used"`
	Size          int64          `json:"size"`
	Cost          *cost          `json:"cost"`
	callUpdate
}

type planEntry struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// update deals with one update, on the session's own goroutine.
func (s *session) update(raw core.Raw) {
	s.lastHeard.Store(time.Now().UnixNano())
	var head struct {
		Kind string `json:"sessionUpdate"`
	}
	var u update
	err := jsonrpc.Decode(raw, &head)
	known := err == nil && knownUpdate(head.Kind)
	if known {
		err = jsonrpc.Decode(raw, &u)
	}
	if err != nil {
		s.a.hear(fleet.Event{Type: "log", Level: "WARN", Text: "malformed update: " + core.ClipTo(string(raw), maxNoise)})
		return
	}
	switch head.Kind { // what holds for the session, with a prompt or without
	case "current_mode_update":
		s.changed(u.CurrentModeID)
		return
	case "config_option_update":
		s.optionsChanged(u.ConfigOptions)
		return
	case "available_commands_update":
		s.commandsChanged(u.Commands)
		return
	case "session_info_update":
		return // nothing of it is shown
	}
	t := s.turn.Load()
	switch {
	case s.replaying.Load():
		s.replayed.Add(1)
	case !known:
		s.a.hear(fleet.Event{Type: "log", Level: "INFO", Text: "unknown update: " + core.ClipTo(string(raw), maxLogLine)})
	case t == nil && head.Kind == "usage_update":
		s.spend(u)
	case t == nil:
		s.a.hear(fleet.Event{Type: "log", Level: "INFO", Text: "outside of a task: " + core.ClipTo(string(raw), maxNoise)})
	default:
		t.update(u)
	}
}

func knownUpdate(kind string) bool {
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
		"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update":
		return true
	}
	return false
}

// update takes what the agent says while it works on a prompt.
func (t *turn) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		t.requested(u.Meta.Usage)
		t.talk("message", u.MessageID, readBlock(u.Content))
	case "agent_thought_chunk":
		t.talk("thought", u.MessageID, readBlock(u.Content))
	case "user_message_chunk":
		// Our own words: they stand in the log already.
	case "tool_call", "tool_call_update":
		t.flushTalk()
		t.upsert(u.callUpdate, u.Content)
	case "plan":
		t.flushTalk()
		t.emit(keeper.Plan(core.Map(u.Entries, func(e planEntry) fleet.Step { return fleet.Step{Text: e.Content, Status: e.Status} })))
	case "usage_update":
		t.s.spend(u)
	}
}
