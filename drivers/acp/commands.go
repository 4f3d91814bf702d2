package acp

import (
	"swarmdeck/drivers/jsonrpc"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// command is one that the agent offers for a prompt's beginning. They are sent as text.
type command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Input       core.Raw `json:"input"`
}

// mostCommands is how many are taken from one update.
const mostCommands = 1000

// commandsChanged takes what the agent says of its commands: each time all of them.
func (s *session) commandsChanged(all []command) {
	var list []fleet.Command
	for _, c := range all[:min(len(all), mostCommands)] {
		var input struct {
			Hint string `json:"hint"`
		}
		if len(c.Input) > 0 && jsonrpc.Decode(c.Input, &input) != nil {
			input.Hint = "" // a kind of input that is not known
		}
		list = append(list, fleet.Command{Name: c.Name, Description: c.Description, Hint: input.Hint})
	}
	s.mu.Lock()
	s.commands = list
	learned := s.learned
	s.mu.Unlock()
	if learned { // else it is told with what the session begins with
		s.publish()
	}
}
