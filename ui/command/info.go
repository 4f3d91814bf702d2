package command

import (
	"strings"

	"swarmdeck/engine/op"

	"github.com/spf13/cobra"
)

// What an operation does, who may, and how sure a cockpit has to be.
type (
	Effect  = op.Effect
	Role    = op.Role
	Confirm = op.Confirm
)

// Their values.
const (
	Reads    = op.Reads
	Writes   = op.Writes
	Destroys = op.Destroys

	Viewer   = op.Viewer
	Operator = op.Operator
	Approver = op.Approver
	Admin    = op.Admin

	ConfirmNone = op.ConfirmNone
	ConfirmAsk  = op.ConfirmAsk
	ConfirmType = op.ConfirmType
)

// Info describes a command line.
type Info struct {
	Path    string // "task cancel"; "" when the line names no command
	Effect  Effect
	Confirm Confirm
	Role    Role
	Short   string
	Use     string // "cancel ID"
	Undo    string // the command that takes it back: "task retry"; "" for none
	Needs   string // the flags that can't be left out
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
		Undo:    cmd.Annotations[noteUndo],
		Needs:   cmd.Annotations[noteNeeds],
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
