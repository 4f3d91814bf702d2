package keeper

import (
	"os"
	"path/filepath"
	"slices"

	"swarmdeck/engine/core"
)

// Memory is where it is kept what an agent talks of, so that another process can take it
// up. It is a convenience: without it the agent begins anew.
type Memory struct {
	Path    string // of a file; "" keeps nothing
	Born    string // when the agent was made: one of the same name begins anew
	Command []string
	Dir     string
}

// remembered is what such a file holds.
type remembered[T any] struct {
	Born    string   `json:"born"`
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	What    T        `json:",embed"`
}

// Recall is what was last remembered with this command and directory; the zero one is
// nothing.
func Recall[T any](m Memory) (none T) {
	var r remembered[T]
	data, err := os.ReadFile(m.Path)
	if err != nil || core.DecodeStored(data, &r) != nil || r.Born != m.Born || r.Dir != m.Dir || !slices.Equal(r.Command, m.Command) {
		return none
	}
	return r.What
}

// Remember keeps it; a failure costs only the conversation.
func Remember[T any](m Memory, what T) {
	data, err := core.Encode(remembered[T]{m.Born, m.Command, m.Dir, what})
	if m.Path == "" || err != nil || os.MkdirAll(filepath.Dir(m.Path), 0o711) != nil {
		return
	}
	next := m.Path + ".new"
	if os.WriteFile(next, data, 0o600) == nil {
		_ = os.Rename(next, m.Path)
	}
}
