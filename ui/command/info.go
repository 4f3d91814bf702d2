package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// Effect is what a command does to the data.
type Effect string

// The effects. --read-only refuses all but Reads.
const (
	Reads    Effect = "read"
	Writes   Effect = "write"
	Destroys Effect = "destructive"
)

// Role is what a person is allowed to do; each includes those before it.
type Role string

// The roles, least first.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Approver Role = "approver"
	Admin    Role = "admin"
)

// Includes reports whether someone with role r may do what least may.
func (r Role) Includes(least Role) bool { return r.allows(least) }

// allows reports whether someone with role r may use a command of role least.
func (r Role) allows(least Role) bool { return r.rank() >= least.rank() }

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 0
	case Operator:
		return 1
	case Approver:
		return 2
	case Admin, "":
		return 3
	}
	return -1
}

// Confirm is how sure a cockpit has to be before it runs a command.
type Confirm string

// The tiers.
const (
	ConfirmNone Confirm = "none"
	ConfirmAsk  Confirm = "confirm" // y or n; Enter means no
	ConfirmType Confirm = "type"    // type the name of what is affected
)

// Info describes a command line.
type Info struct {
	Path    string // "task cancel"; "" when the line names no command
	Effect  Effect
	Confirm Confirm
	Role    Role
	Short   string
	Use     string // "cancel ID"
}

// Describe says what a line would do, without running it. Flags may be
// missing or wrong; only the command words count. Who asks often keeps a
// Lexicon.
func Describe(args []string) Info { return new(Lexicon).Describe(args) }

// Lexicon describes any number of lines with one tree, which it makes when
// first asked. It is for one goroutine.
type Lexicon struct{ t *tree }

// Describe says what a line would do, without running it.
func (l *Lexicon) Describe(args []string) Info {
	if l.t == nil {
		l.t = newTree(&Env{}, nil)
	}
	return describe(l.t.find(args))
}

func describe(cmd *cobra.Command) Info {
	if cmd == nil || cmd.Annotations[noteEffect] == "" {
		return Info{Effect: Reads, Confirm: ConfirmNone, Role: Viewer}
	}
	return Info{
		Path:    commandPath(cmd),
		Effect:  Effect(cmd.Annotations[noteEffect]),
		Confirm: Confirm(cmd.Annotations[noteConfirm]),
		Role:    Role(cmd.Annotations[noteRole]),
		Short:   cmd.Short,
		Use:     cmd.Use,
	}
}

// Commands lists every command of the tree in the order of help, for menus
// and searchable help.
func Commands() []Info {
	t := newTree(&Env{}, nil)
	var all []Info
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Annotations[noteEffect] != "" && cmd.HasParent() && !cmd.Hidden {
			all = append(all, describe(cmd))
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(t.root)
	return all
}

func commandPath(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}
