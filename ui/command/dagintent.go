package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/dag/control"
)

// showIntent prints one intent in full, with its steps.
func showIntent(c *call, i control.Intent) error {
	return c.print(i, func(w io.Writer) error {
		bare := struct {
			control.Intent `json:",embed"`
			Steps          *int `json:"steps,omitzero"` // they follow
		}{Intent: i}
		if err := details(w, bare); err != nil {
			return err
		}
		fmt.Fprintln(w)
		c.table(w, nil, i.Steps)
		return nil
	})
}
