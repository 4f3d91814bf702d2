package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/op"
)

// showIntent prints one intent in full, with its steps.
func showIntent(c *call, o *op.Op, out any) (bool, error) {
	i, is := out.(control.Intent)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.print(i, func(w io.Writer) error {
		data, err := core.Encode(struct {
			control.Intent `json:",embed"`
			Steps          *int `json:"steps,omitzero"` // they follow
		}{Intent: i})
		if err != nil {
			return fmt.Errorf("encode an intent: %w", err)
		}
		if err := details(w, data); err != nil {
			return err
		}
		fmt.Fprintln(w)
		c.table(w, nil, i.Steps)
		return nil
	})
}
