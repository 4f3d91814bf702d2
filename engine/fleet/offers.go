package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Offers is what an agent's own program can be set to, as it said last.
type Offers struct {
	Modes  []Choice `json:"modes,omitempty"` // of its permissions
	Mode   string   `json:"mode,omitempty"`  // that it is in
	Models []Choice `json:"models,omitempty"`
	Model  string   `json:"model,omitempty"` // that it uses

	Commands []Command `json:"commands,omitempty"` // that a message may begin with
}

// Command is one that an agent's program knows: a message that begins with its name after a
// slash carries it out.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Hint        string `json:"hint,omitempty"` // what may follow
}

// Choice is one of them.
type Choice struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Setting is what of an agent's program can be set. It is also the name of the option
// that holds it.
type Setting string

// The settings.
const (
	SetMode  Setting = "mode"
	SetModel Setting = "model"
)

// Chooser is a Handle of an agent whose program can be set.
type Chooser interface {
	// Choose has it set from now on, and in the conversation that is open, if
	// any, at once.
	Choose(ctx context.Context, what Setting, value string) error
}

// Configurable is a Runtime whose agents' programs can be set by their options.
type Configurable interface{ Configures(what Setting) bool }

// offerWait is how long an operation waits to see the record tell what was set.
const offerWait = 500 * time.Millisecond

const (
	maxChoices = 200 // that a record keeps, of each setting
	maxChoice  = 128 // bytes of an id or a name

	maxCommands = 100 // that a record keeps
	maxAbout    = 300 // bytes of a command's description
)

// bounded is what a record keeps of it.
func (o *Offers) bounded() *Offers {
	if o == nil {
		return nil
	}
	clip := func(all []Choice) (kept []Choice) {
		for _, c := range all {
			if len(kept) < maxChoices && c.ID != "" && len(c.ID) <= maxChoice { // an id that is cut names nothing
				kept = append(kept, Choice{ID: core.Clip(c.ID), Name: core.ClipTo(c.Name, maxChoice)})
			}
		}
		return kept
	}
	var commands []Command
	for _, c := range o.Commands {
		if len(commands) < maxCommands && c.Name != "" && len(c.Name) <= maxChoice && core.Clip(c.Name) == c.Name && !strings.ContainsFunc(c.Name, unfit) {
			commands = append(commands, Command{Name: c.Name, Description: core.ClipTo(oneLine(c.Description, maxAbout), maxAbout), Hint: core.ClipTo(oneLine(c.Hint, maxChoice), maxChoice)})
		}
	}
	return &Offers{
		Modes: clip(o.Modes), Mode: core.ClipTo(o.Mode, maxChoice), Models: clip(o.Models), Model: core.ClipTo(o.Model, maxChoice), Commands: commands,
	}
}

// unfit is what no command's name may hold: it is typed, and ends with a space.
func unfit(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

func (o *Offers) same(other *Offers) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.Mode == other.Mode && o.Model == other.Model && slices.Equal(o.Modes, other.Modes) && slices.Equal(o.Models, other.Models) &&
		slices.Equal(o.Commands, other.Commands)
}

// Offered is what its program can be set to, as it said last.
func (a Agent) Offered() (o Offers) {
	if a.Offers != nil {
		o = *a.Offers
	}
	return o
}

// Of is what there is to choose from, and what it is set to.
func (o Offers) Of(what Setting) (all []Choice, now string) {
	if what == SetModel {
		return o.Models, o.Model
	}
	return o.Modes, o.Mode
}

// Allowed lists them for a person.
func Allowed(all []Choice) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.ID
		if c.Name != "" && c.Name != c.ID {
			words[i] += " (" + c.Name + ")"
		}
	}
	return core.ClipTo(strings.Join(words, ", "), 1000)
}

// Choose sets an agent's mode or model for all of its conversations to come, and for the
// one that is open. What its program does not offer is refused, where that is known.
func (f *Fleet) Choose(ctx context.Context, by core.Caller, name string, what Setting, value string) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	seen := m.rec.Load()
	if rt, ok := f.opt.Runtimes[seen.Runtime].(Configurable); !ok || !rt.Configures(what) {
		return *seen, core.Invalid(string(what), value, fmt.Sprintf("none: agents of runtime %s have no %s to be set", seen.Runtime, what))
	}
	detail := map[string]any{string(what): value}
	a, err := f.change(ctx, by, m, record.Event{Type: "agent." + string(what) + "_set", Detail: detail}, func(_ *audit.Tx, a *Agent) error {
		all, _ := a.Offered().Of(what)
		switch known := slices.ContainsFunc(all, func(c Choice) bool { return c.ID == value }); {
		case a.Offers != nil && len(all) == 0:
			return core.Invalid(string(what), value, fmt.Sprintf("none: agent %s offers no %ss", a.Name, what))
		case !known && len(all) > 0 && len(all) < maxChoices:
			return core.Invalid(string(what), value, "one of: "+Allowed(all))
		}
		options := map[string]core.Raw{}
		if len(a.Options) > 0 {
			if err := core.DecodeStored(a.Options, &options); err != nil {
				return fmt.Errorf("read the options of agent %s: %w", a.Name, err)
			}
		}
		if was, ok := options[string(what)]; ok {
			detail["from"] = was
		}
		options[string(what)] = core.MustEncode(value)
		a.Options = core.MustEncode(options)
		return nil
	})
	if err != nil {
		return a, err
	}
	if h, _ := m.now(); h != nil {
		if c, ok := h.(Chooser); ok {
			if err := c.Choose(ctx, what, value); err != nil {
				return a, fmt.Errorf("the %s of agent %s is kept as %s, but could not be set in its conversation: %w", what, name, value, err)
			}
			m.await(ctx, offerWait, func() bool { _, now := m.rec.Load().Offered().Of(what); return m.gone || now == value })
		}
	}
	return *m.rec.Load(), nil
}
