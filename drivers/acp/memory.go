package acp

import (
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/core"
)

// memory is what is kept of a conversation, so that another process can take
// it up. It is a convenience: without it the agent begins anew.
type memory struct {
	Session string   `json:"session"`
	Born    string   `json:"born"` // when the agent was made: one of the same name begins anew
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
}

// recall is the session that was last used with this command and directory.
func (p place) recall() string {
	data, err := os.ReadFile(p.memory)
	if err != nil || p.Fresh {
		return ""
	}
	var m memory
	if core.DecodeStored(data, &m) != nil || m.Born != p.born || m.Dir != p.spec.Dir || !slices.Equal(m.Command, p.spec.Argv) {
		return ""
	}
	return m.Session
}

// remember keeps a session's id; a failure costs only the conversation.
func (p place) remember(session string) {
	data, err := core.Encode(memory{Session: session, Born: p.born, Command: p.spec.Argv, Dir: p.spec.Dir})
	if err != nil || os.MkdirAll(filepath.Dir(p.memory), 0o711) != nil {
		return
	}
	next := p.memory + ".new"
	if os.WriteFile(next, data, 0o600) == nil {
		_ = os.Rename(next, p.memory)
	}
}
