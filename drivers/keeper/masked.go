package keeper

import (
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// Masked hides secrets in what an agent and its model say to each other.
func Masked(mask func() *secret.Mask, hear func(fleet.Event) func(fleet.Event)) func(fleet.Event) func(fleet.Event) {
	return func(asked fleet.Event) func(fleet.Event) {
		m := mask()
		answered := hear(withoutSecrets(m, asked))
		return func(e fleet.Event) { answered(withoutSecrets(m, e)) }
	}
}

// withoutSecrets masks every text of an event's model call.
func withoutSecrets(m *secret.Mask, e fleet.Event) fleet.Event {
	if m == nil || e.Model == nil {
		return e
	}
	c := *e.Model
	c.Name, c.Finish, c.Params, c.Tools = m.String(c.Name), m.String(c.Finish), core.Raw(m.JSON(c.Params)), core.Raw(m.JSON(c.Tools))
	c.Messages = slices.Clone(c.Messages)
	for i := range c.Messages {
		parts := slices.Clone(c.Messages[i].Content)
		for j := range parts {
			p := &parts[j]
			p.Text, p.URL, p.Input, p.Output = m.String(p.Text), m.String(p.URL), core.Raw(m.JSON(p.Input)), core.Raw(m.JSON(p.Output))
		}
		c.Messages[i].Content = parts
	}
	e.Model = &c
	return e
}
