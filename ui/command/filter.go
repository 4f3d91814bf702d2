package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
)

// filter holds the flags that every list has.
type filter struct {
	f            core.Filter
	since, until string
}

// bind declares the flags; statuses are the values --status takes.
func (l *filter) bind(f *pflag.FlagSet, statuses ...string) {
	f.StringVar(&l.f.Status, "status", "", "only with this `STATUS`"+allowedList(statuses))
	f.StringVar(&l.f.Agent, "agent", "", "only of this agent `NAME`")
	f.StringVar(&l.f.Kind, "kind", "", "only of this `KIND`")
	f.StringVar(&l.f.Session, "session", "", "only of this session `ID`")
	f.StringVar(&l.f.Trace, "trace", "", "only with this trace `ID`")
	f.StringVar(&l.since, "since", "", "only from this `TIME` on (RFC 3339, or 15m for that long ago)")
	f.StringVar(&l.until, "until", "", "only before this `TIME`")
	f.StringVar(&l.f.Match, "match", "", "only with this `TEXT` in it")
	f.IntVar(&l.f.Page, "page", 0, "page `N`, from 1; prints where the page stands as a last line")
	f.IntVar(&l.f.Size, "page-size", 0, "records on a page `N`, 1-100 (default 20)")
	if len(statuses) > 0 {
		source(f, "status", "enum:"+strings.Join(statuses, ","))
	}
	source(f, "agent", "agent")
	source(f, "session", "session")
}

func allowedList(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, "|")
}

// read checks the flags' values.
func (l *filter) read(c *call, statuses ...string) (core.Filter, error) {
	f := l.f
	var err error
	if f.Since, err = c.instant("since", l.since); err != nil {
		return f, err
	}
	if f.Until, err = c.instant("until", l.until); err != nil {
		return f, err
	}
	if c.flags.Changed("page") && f.Page < 1 {
		return f, usage("page", "--page: %d is not allowed; allowed: 1 or more", f.Page)
	}
	if c.flags.Changed("page-size") && (f.Size < 1 || f.Size > core.MaxPageSize) {
		return f, usage("page_size", "--page-size: %d is not allowed; allowed: 1-%d", f.Size, core.MaxPageSize)
	}
	for status := range strings.SplitSeq(f.Status, ",") {
		if f.Status != "" && len(statuses) > 0 && !slices.Contains(statuses, status) {
			return f, usage("status", "--status: %q is not allowed; allowed: %s, or several with commas between", core.Clip(status), strings.Join(statuses, ", "))
		}
	}
	return f, nil
}

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
