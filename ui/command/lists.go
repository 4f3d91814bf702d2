package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
)

// lists makes a command with the filter flags that prints a page of records.
// Statuses are the values of --status, none means any.
func lists[T any](t *tree, s spec, statuses []string, f *face.Face, page func(*call, core.Filter) (core.Page[T], error)) *cobra.Command {
	var l filter
	var asked core.Filter
	flags, check := s.flags, s.check
	s.flags = func(set *pflag.FlagSet) {
		l.bind(set, statuses...)
		if flags != nil {
			flags(set)
		}
	}
	s.check = func(c *call, args []string) (err error) {
		if asked, err = l.read(c, statuses...); err != nil || check == nil {
			return err
		}
		return check(c, args)
	}
	s.run = func(c *call, _ []string) error {
		found, err := page(c, asked)
		if err != nil {
			return err
		}
		return c.listBy(f, found)
	}
	return t.command(s)
}
