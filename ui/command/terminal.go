package command

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarmdeck/engine/terminal"
	"swarmdeck/ui/term"
)

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
