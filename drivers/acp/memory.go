package acp

import "swarmdeck/drivers/keeper"

// memory is what is kept of a conversation.
type memory struct {
	Session string `json:"session"`
	Told    bool   `json:"told,omitzero"` // of a fork: what it goes on from
	Spent   spent  `json:"spent,omitzero"`
}

func (p place) recall() (m memory) {
	if p.Fresh {
		return memory{}
	}
	return keeper.Recall[memory](p.kept())
}

func (p place) remember(m memory) {
	if !p.Fresh {
		keeper.Remember(p.kept(), m)
	}
}

func (p place) kept() keeper.Memory {
	return keeper.Memory{Path: p.memory, Born: p.born, Command: p.Spec.Argv, Dir: p.Spec.Dir}
}
