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
	Told    bool     `json:"told,omitzero"` // of a fork: what it goes on from
}

// recall is the session that was last used with this command and directory,
// and whether a fork was told its past there.
func (p place) recall() (session string, told bool) {
	data, err := os.ReadFile(p.memory)
	if err != nil || p.Fresh {
		return "", false
	}
	var m memory
	if core.DecodeStored(data, &m) != nil || m.Born != p.born || m.Dir != p.spec.Dir || !slices.Equal(m.Command, p.spec.Argv) {
		return "", false
	}
	return m.Session, m.Told
}

// remember keeps a session's id; a failure costs only the conversation.
func (p place) remember(session string, told bool) {
	if p.Fresh {
		return
	}
	data, err := core.Encode(memory{Session: session, Born: p.born, Command: p.spec.Argv, Dir: p.spec.Dir, Told: told})
	if err != nil || os.MkdirAll(filepath.Dir(p.memory), 0o711) != nil {
		return
	}
	next := p.memory + ".new"
	if os.WriteFile(next, data, 0o600) == nil {
		_ = os.Rename(next, p.memory)
	}
}
