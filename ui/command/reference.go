package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
