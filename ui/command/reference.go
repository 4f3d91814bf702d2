package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/op"
	"swarmdeck/engine/safeopen"
)

// writeReference writes a page for each noun, and README.md for all, into a directory.
func writeReference(own *safeopen.Own, dir string, root *cobra.Command) error {
	to, err := own.Root(dir)
	if err != nil {
		return fileError("markdown", dir, err)
	}
	defer to.Close()
	for name, page := range reference(root) {
		if err := to.At(name, func(p *safeopen.Place) error { _, err := p.Put([]byte(page), nil); return err }); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// reference is the pages by the names of their files.
func reference(root *cobra.Command) map[string]string {
	pages := map[string]string{}
	var index strings.Builder
	index.WriteString("# Commands\n\nMade from the program; `swarmdeck help COMMAND` says the same.\n\n")
	index.WriteString("Every line works in a shell, in the cockpit's `:` palette and in a script. Exit codes: 0 ok, 1 failed, 2 usage, 3 data file,\n4 timed out, 130 interrupted.\n\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&index, "## %s\n\n| command | what |\n|---|---|\n", strings.TrimSuffix(g.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && !cmd.Hidden {
				name := cmd.Name() + ".md"
				fmt.Fprintf(&index, "| [%s](%s) | %s |\n", cmd.Name(), name, cmd.Short)
				pages[name] = referencePage(cmd)
			}
		}
		index.WriteString("\n")
	}
	index.WriteString("## Flags of every command\n\n" + flagTable(root.PersistentFlags(), nil))
	index.WriteString("\n## Flags of every list\n\n" + flagTable(listFlags(), nil))
	pages["README.md"] = index.String()
	return pages
}

func listFlags() *pflag.FlagSet {
	list := pflag.NewFlagSet("list", pflag.ContinueOnError)
	new(filter).bind(list)
	return list
}

func referencePage(top *cobra.Command) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\n%s.\n", top.Name(), top.Short)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if a := cmd.Annotations; a[noteEffect] != "" && !cmd.Hidden {
			if cmd != top {
				fmt.Fprintf(&out, "\n## %s\n", commandPath(cmd))
			}
			fmt.Fprintf(&out, "\n    %s\n\n%s\n", cmd.UseLine(), strings.TrimSuffix(cmp.Or(cmd.Long, cmd.Short), ".")+".")
			fmt.Fprintf(&out, "\nEffect: %s. Rights: %s.%s\n", a[noteEffect], a[noteRole], map[string]string{
				string(ConfirmAsk): " The cockpit asks first.", string(ConfirmType): " The cockpit has its name typed first.",
			}[a[noteConfirm]])
			var lists *pflag.FlagSet
			if cmd.Flags().Lookup("page-size") != nil && cmd.Flags().Lookup("since") != nil {
				lists = listFlags()
				out.WriteString("\nIt has the [flags of every list](README.md#flags-of-every-list).\n")
			}
			if table := flagTable(cmd.LocalNonPersistentFlags(), lists); table != "" {
				out.WriteString("\n" + table)
			}
			if cmd.Example != "" {
				fmt.Fprintf(&out, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(top)
	return out.String()
}

// flagTable is a table of flags but for those of another set.
func flagTable(flags, but *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden || but != nil && but.Lookup(f.Name) != nil && f.Name != "status" {
			return
		}
		word, about := pflag.UnquoteUsage(f)
		about = strings.ReplaceAll(about, "|", `\|`)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			about += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", strings.TrimSpace(name+" "+word), about)
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| flag | what |\n|---|---|\n" + rows.String()
}

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
