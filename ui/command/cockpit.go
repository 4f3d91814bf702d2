package command

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
	"swarmdeck/ui/term"
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

// ShownTerminal is what an agent's terminal shows.
type ShownTerminal struct {
	Agent    string         `json:"agent"`
	Title    string         `json:"title,omitempty"`
	State    terminal.State `json:"state"`
	Cols     int            `json:"cols"`
	Rows     int            `json:"rows"`
	Writer   string         `json:"writer,omitempty"`   // who types
	Watchers []string       `json:"watchers,omitempty"` // who looks
	Screen   string         `json:"screen"`
}

func (t *tree) agentAttach() *cobra.Command {
	return t.command(spec{
		stays: true, use: "attach NAME", short: "Open an agent's terminal, or print it as text", effect: Reads, args: []string{"agent"}, ownScope: true,
		long: "Open the terminal of an agent with the runtime terminal: what its program shows, to look at and to type into. On a\n" +
			"screen it is a page of the cockpit: who may operate has the keyboard unless somebody else has, and lets go of it by\n" +
			"ctrl+]. Into a pipe, in a script or with -o json it prints what the terminal shows now.",
		example: "agent attach shell\nagent attach shell -o json",
		run: func(c *call, args []string) error {
			if c.env.Doors.Cockpit != nil && c.g.Output == "text" && c.screened() {
				return c.enterCockpit(Start{Globals: c.g, Open: c.env.Open, Dir: c.env.Dir, Terminal: args[0]})
			}
			return c.printTerminal(args[0])
		},
	})
}

// screened reports whether who calls sits at a screen that a cockpit can have.
func (c *call) screened() bool {
	has := c.env.Terminal != nil
	in, out := has, has
	if !c.env.Attached {
		in, out = term.IsTerminal(os.Stdin), term.IsTerminal(os.Stdout)
	}
	return in && out && !term.Detect(c.env.getenv, in, out, c.g.Screen()).Plain
}

func (c *call) printTerminal(name string) error {
	c.need.Active = !c.idle()
	if err := c.scope(); err != nil {
		return err
	}
	seat, err := c.eng.Fleet.Attach(c.ctx, c.by, name)
	if err != nil {
		return err
	}
	defer func() { _ = seat.Close(c.ctx) }()
	pic, err := seat.Screen(0, 0)
	if err != nil {
		return err
	}
	desk := seat.Desk()
	v := ShownTerminal{
		Agent: name, Title: pic.Title, State: pic.State, Cols: pic.Cols, Rows: pic.Rows, Writer: desk.Writer,
		Watchers: slices.DeleteFunc(desk.Watchers, func(w string) bool { return w == c.by.Name }), Screen: pic.Text(),
	}
	return c.print(v, func(w io.Writer) error {
		_, err := io.WriteString(w, terminalText(v.Screen))
		return err
	})
}

// terminalText is what a terminal shows, made harmless line by line.
func terminalText(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		b.WriteString(strings.TrimRight(term.Clean(strings.TrimSuffix(line, "\n")), " ") + "\n")
	}
	return b.String()
}
