package terminal

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/terminal"
)

// agentOptions are the options of one agent.
type agentOptions struct {
	// Cols and Rows are the size until somebody who types has another; 0 is 120x40.
	Cols int `json:"cols,omitzero"`
	Rows int `json:"rows,omitzero"`
	// Prompt is how the last lines of the screen look, without blanks at their end, or
	// the cursor's line before it, when the program waits, as a regular expression; ""
	// is the usual ends of a prompt, in the cursor's line.
	Prompt string `json:"prompt,omitempty" allow:"at most 1000 bytes"`
	// QuietMS is how long the screen stands still for that to count, in milliseconds;
	// 0 is 1500.
	QuietMS int `json:"quiet_ms,omitzero" allow:"none or 100-600000"`
	// Interrupt is what is typed to cancel a task; "" is ctrl+c.
	Interrupt string `json:"interrupt,omitempty" allow:"at most 64 bytes"`
	keeper.Choices

	prompt *regexp.Regexp // nil is the usual
}

func readOptions(options core.Raw) (o agentOptions, err error) {
	if len(options) > 0 {
		if err := core.Decode(options, &o); err != nil {
			return o, fmt.Errorf("options: %w", err)
		}
	}
	if err := bound.CheckIn("options.", &o); err != nil {
		return o, err
	}
	size := terminal.Size{Cols: o.cols(), Rows: o.rows()}
	switch {
	case size.Bounded() != size:
		return o, core.Invalid("options.cols, options.rows", size.String(), fmt.Sprintf("from %dx%d to %dx%d", terminal.MinCols, terminal.MinRows, terminal.MaxCols, terminal.MaxRows))
	case strings.ContainsRune(o.Interrupt, 0):
		return o, core.Invalid("options.interrupt", o.Interrupt, "what can be typed")
	case o.Prompt != "":
		if o.prompt, err = regexp.Compile("(?m)" + o.Prompt); err != nil {
			return o, core.Invalid("options.prompt", core.Clip(o.Prompt), "a regular expression (RE2): "+err.Error())
		}
	}
	return o, o.Options.Check()
}

func (o *agentOptions) cols() int { return cmp.Or(o.Cols, 120) }

func (o *agentOptions) rows() int { return cmp.Or(o.Rows, 40) }

func (o *agentOptions) quiet() time.Duration {
	return time.Duration(cmp.Or(o.QuietMS, 1500)) * time.Millisecond
}

func (o *agentOptions) interrupt() []byte { return []byte(cmp.Or(o.Interrupt, "\x03")) }
