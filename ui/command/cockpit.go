package command

import (
	"cmp"
	"context"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
)

// runCockpit is swarmdeck without a command.
func runCockpit(c *call, args []string) error {
	if len(args) > 0 {
		return unknownCommand(c.cmd, args[0])
	}
	s := Start{Globals: c.g, Open: c.env.Open, Dir: c.env.Dir}
	if c.g.Script != "" {
		if c.env.Doors.Script == nil {
			return core.Errorf(core.Unavailable, "--script is not available here").With("field", "script")
		}
		if c.g.Script != "-" {
			s.Script = c.env.path(c.g.Script)
		}
		var err error
		if s.Caller, err = c.operator(); err != nil {
			return err
		}
		if !c.flags.Changed("data") && c.env.getenv("SWARMDECK_DATA") == "" {
			s.Data = "" // a script has a file of its own then
		}
		return c.env.Doors.Script(c.ctx, c.env, s)
	}
	for flag, set := range map[string]bool{"update": c.g.Update, "show": c.g.Show} {
		if set {
			return usage(flag, "--%s belongs to --script FILE", flag)
		}
	}
	return c.enterCockpit(s)
}

func (c *call) enterCockpit(s Start) error {
	if c.env.Doors.Cockpit == nil {
		return usage("command", "a command is missing; try: help")
	}
	c.need.Active = !c.idle()
	err := c.scope()
	if err != nil {
		return err
	}
	eng := c.eng
	s.Engine, s.Caller = eng, c.by
	s.Data = c.g.Data
	// Lines given inside the door work on this engine, whatever they ask for.
	inside := *c.env
	inside.Caller, inside.ReadOnly, inside.Close, inside.Doors, inside.LogIn = c.by, c.g.ReadOnly, nil, Doors{}, nil
	inside.As, inside.Key, inside.Role = "", "", cmp.Or(c.role, inside.Role)
	if inside.Own, err = c.own(); err != nil {
		return err
	}
	inside.Open = func(context.Context, Need) (*engine.Engine, error) { return eng, nil }
	return c.env.Doors.Cockpit(c.ctx, &inside, s)
}

// Cockpit says whether a line opens the cockpit on a screen, and with which global flags.
// A line that is mistaken opens none.
func Cockpit(args []string) (Globals, bool) {
	t := newTree(&Env{}, nil)
	if cmd, rest, err := t.root.Find(args); err == nil && cmd.CommandPath() == t.root.Name()+" agent attach" {
		ok := cmd.ParseFlags(rest) == nil && len(cmd.Flags().Args()) == 1 && t.g.Output == "text"
		return t.g, ok
	}
	if t.find(args) != t.root || t.root.ParseFlags(args) != nil {
		return Globals{}, false
	}
	return t.g, len(t.root.Flags().Args()) == 0 && t.g.Script == ""
}

// Repeats says whether a line whose engine went away in its middle can be carried out by
// the next: it shows something and changes nothing.
func Repeats(args []string) bool {
	_, cockpit := Cockpit(args)
	return cockpit || Describe(args).Effect == Reads
}
