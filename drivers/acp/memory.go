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
	Spent   spent    `json:"spent,omitzero"`
}

// recall is what was last remembered with this command and directory; the zero one is
// nothing.
func (p place) recall() (m memory) {
	data, err := os.ReadFile(p.memory)
	if err != nil || p.Fresh {
		return memory{}
	}
	if core.DecodeStored(data, &m) != nil || m.Born != p.born || m.Dir != p.spec.Dir || !slices.Equal(m.Command, p.spec.Argv) {
		return memory{}
	}
	return m
}

// remember keeps what is known of a session; a failure costs only the conversation.
func (p place) remember(m memory) {
	if p.Fresh {
		return
	}
	m.Born, m.Command, m.Dir = p.born, p.spec.Argv, p.spec.Dir
	data, err := core.Encode(m)
	if err != nil || os.MkdirAll(filepath.Dir(p.memory), 0o711) != nil {
		return
	}
	next := p.memory + ".new"
	if os.WriteFile(next, data, 0o600) == nil {
		_ = os.Rename(next, p.memory)
	}
}
