package command

import (
	"fmt"

	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// concealed tells of variables that were given in clear and are kept as secrets.
func (c *call) concealed(given, kept map[string]string) {
	for _, text := range op.Concealed(given, kept) {
		fmt.Fprintln(c.env.Stderr, term.Clean(text))
	}
}
