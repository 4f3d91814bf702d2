package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

// Most commands list records, show one, or change one. Such a command is a
// spec with its call of the engine; what these have in common is here.

// lists makes a command with the filter flags that prints a page of records.
// Statuses are the values of --status, none means any.
func lists[T any](t *tree, s spec, statuses []string, cols func(*call) []column[T], page func(*call, core.Filter) (core.Page[T], error)) *cobra.Command {
	var l filter
	var f core.Filter
	flags, check := s.flags, s.check
	s.flags = func(set *pflag.FlagSet) {
		l.bind(set, statuses...)
		if flags != nil {
			flags(set)
		}
	}
	s.check = func(c *call, args []string) (err error) {
		if f, err = l.read(c, statuses...); err != nil || check == nil {
			return err
		}
		return check(c, args)
	}
	s.run = func(c *call, _ []string) error {
		found, err := page(c, f)
		if err != nil {
			return err
		}
		return list(c, found, cols(c))
	}
	return t.command(s)
}

// shows is the run of a command that prints one record in full, which its
// first argument names.
func shows[T any](get func(c *call, id string) (T, error)) func(*call, []string) error {
	return func(c *call, args []string) error {
		found, err := get(c, args[0])
		if err != nil {
			return err
		}
		return c.show(found)
	}
}

// changes is the run of a command that changes one record, which its first
// argument names, and prints it as it is now.
func changes[T any](cols func(*call) []column[T], do func(c *call, id string) (T, error)) func(*call, []string) error {
	return func(c *call, args []string) error {
		changed, err := do(c, args[0])
		if err != nil {
			return err
		}
		return record(c, changed, cols(c))
	}
}

// withReason declares the --reason that c.reason reads.
func withReason(f *pflag.FlagSet) { f.String("reason", "", "why, for the record") }

func (c *call) reason() string { return c.flag("reason") }

// flag is the value of one of the command's flags, as text.
func (c *call) flag(name string) string { return c.flags.Lookup(name).Value.String() }
