package command

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/ui/term"
)

// Look says what a doctor looks at.
type Look struct {
	Profile string // reader, worker or open
	Data    string // path of the data file, which need not be there
	Dir     string // where runs would work
	Getenv  func(string) string
	// Versions, where it is given, is all that is looked at: what these commands print.
	Versions [][]string
	Flags    term.Flags
}

// Check is one finding of a doctor.
type Check struct {
	Check  string `json:"check"`
	Layer  string `json:"layer,omitempty"` // of the wall, if it is about one
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"` // the profile does not hold what it promises without it
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`    // how to get it
	Broken bool   `json:"broken,omitempty"` // something of the data file is, or of its engine
}

func (t *tree) doctor() *cobra.Command {
	var profile string
	return t.command(spec{
		use: "doctor", short: "Tell which layers of the wall hold here, what is missing, and how to get it", effect: Reads, ownScope: true,
		long: "Start a command that does nothing as a run of a profile would be, and tell which layers of the wall hold it; look\n" +
			"at the terminal, git, the agents on PATH, the data file and its keys too, and name the records of it that can't be\n" +
			"read and what else is wrong in its engine. Nothing is changed. It works without a data file and beside an engine.\n" +
			"Exit 1 when something is missing that the profile needs, or broken.",
		example: "doctor --profile reader -o json",
		flags: func(f *pflag.FlagSet) {
			enumVar(f, &profile, "profile", "", "worker", "the runs to tell of: reader, worker, open", "reader", "worker", "open")
		},
		run: func(c *call, _ []string) error {
			if c.env.Doctor == nil {
				return core.Errorf(core.Denied, "doctor: only on the machine of the data file").With("field", "command")
			}
			all := c.env.Doctor(c.ctx, Look{
				Profile: profile, Data: c.g.Data, Dir: c.env.path("."), Getenv: c.env.getenv,
				Flags: c.g.Screen(),
			})
			all = append(all, c.records()...)
			if err := c.found(all); err != nil {
				return err
			}
			for _, check := range all {
				if !check.OK && (check.Needed || check.Broken) {
					return &ExitError{Code: ExitFailed}
				}
			}
			return nil
		},
	})
}

// records are the findings about the data file and the engine that has it: one
// for each trouble.
func (c *call) records() []Check {
	if c.env.Troubles == nil {
		return nil
	}
	troubles, err := c.env.Troubles(c.ctx, c.g.Data)
	if err != nil {
		return []Check{{Check: "records", Detail: "they were not looked at: " + err.Error()}}
	}
	if len(troubles) == 0 {
		return []Check{{Check: "records", OK: true, Detail: "nothing is wrong with what is kept, as far as an engine reads it at its start"}}
	}
	all := make([]Check, len(troubles))
	for i, t := range troubles {
		all[i] = Check{
			Check: "records", Broken: true, Detail: cmp.Or(t.Tenant, "every tenant") + ": " + t.String(),
			Fix: "look with: audit reconcile; take it back from a backup with: store restore",
		}
		if t.About == health.Elsewhere {
			all[i].Broken, all[i].Fix = false, "start an engine on that machine, then stop this one"
		}
	}
	return all
}

// found prints findings: a line each, and one more where something can be done.
func (c *call) found(all []Check) error {
	if c.g.Output == "json" {
		return c.list(all)
	}
	var out bytes.Buffer
	width := 0
	for _, check := range all {
		width = max(width, term.Width(check.Check))
	}
	for _, check := range all {
		word := "ok"
		switch {
		case check.Broken:
			word = "BROKEN"
		case !check.OK && check.Needed:
			word = "MISSING"
		case !check.OK:
			word = "no"
		}
		fmt.Fprintf(&out, "%-7s  %-*s  %s\n", word, width, check.Check, term.Clean(check.Detail))
		if check.Fix != "" {
			what := "to get it"
			if check.OK {
				what = "for more"
			}
			fmt.Fprintf(&out, "%*s  %s: %s\n", 9+width, "", what, term.Clean(check.Fix))
		}
	}
	return c.flush(&out)
}
