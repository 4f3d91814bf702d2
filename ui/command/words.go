package command

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

// begin is the section of help that is shown first.
const begin = "Begin"

// firstHelp writes the help that a newcomer sees: the commands to begin with, and few flags.
func (t *tree) firstHelp(w io.Writer, all []top) error {
	var out bytes.Buffer
	fmt.Fprint(&out, "swarmdeck alone opens the cockpit; swarmdeck demo opens it on an example swarm.\n\n")
	for _, top := range all {
		fmt.Fprintf(&out, "  %-9s %s\n", top.name, top.make().Short)
	}
	fmt.Fprintln(&out)
	for _, name := range []string{"data", "output", "as", "read-only"} {
		word, about := pflag.UnquoteUsage(t.root.PersistentFlags().Lookup(name))
		fmt.Fprintf(&out, "  %-14s %s\n", strings.TrimSpace("--"+name+" "+word), about)
	}
	fmt.Fprintln(&out, "\nswarmdeck help COMMAND tells of one, swarmdeck help --all lists everything.")
	_, err := w.Write(out.Bytes())
	return err
}

// foreign are words of other programs, each with the commands that do here what is meant.
// A word that is a command's verb, and only a noun is missing, needs no line.
//
//go:embed foreign.txt
var foreign string

// verbs are other words for what is done to a noun: the first that the noun has is meant.
//
//go:embed verbs.txt
var verbs string

// row is what a table has for a word, "" for nothing.
func row(table, word string) string {
	_, line, _ := strings.Cut("\n"+table, "\n"+word+": ")
	line, _, _ = strings.Cut(line, "\n")
	return line
}

// meant are the commands that a table has for a word, but those that cmd lacks.
func meant(table string, cmd *cobra.Command, word string) (all []string) {
	for name := range strings.SplitSeq(row(table, word), ", ") {
		found, rest, err := cmd.Find(strings.Fields(name))
		if name != "" && err == nil && found != cmd && len(rest) == 0 {
			all = append(all, name)
		}
	}
	return all
}

// unknownCommand names what is meant by a word that is no command of cmd, or like it.
func unknownCommand(cmd *cobra.Command, word string) error {
	cmd.SuggestionsMinimumDistance = 2
	low := strings.ToLower(word)
	var near []string
	if cmd.HasParent() {
		near = meant(verbs, cmd, low)
		near = near[:min(1, len(near))]
	} else {
		near = meant(foreign, cmd, low)
	}
	if len(near) == 0 && !cmd.HasParent() { // a verb without its noun
		for _, noun := range cmd.Commands() {
			if child(noun, low) != nil {
				near = append(near, noun.Name()+" "+low)
			}
		}
	}
	if len(near) == 0 {
		near = cmd.SuggestionsFor(word)
	}
	hint := "one of " + strings.Join(names(cmd), ", ")
	switch {
	case len(near) > 0:
		hint = "did you mean " + strings.Join(near[:min(4, len(near))], " or ") + "?"
	case !cmd.HasParent():
		hint = "swarmdeck help lists the commands"
	}
	where := strings.TrimSpace("swarmdeck " + commandPath(cmd))
	return usage("command", "unknown command %q for %q; %s", core.Clip(word), where, hint)
}

// foreignFlags are flags of other programs, with what is meant here.
//
//go:embed flags.txt
var foreignFlags string

// flagNear says what an unknown flag of cmd is like; "" for nothing.
func flagNear(cmd *cobra.Command, name string) string {
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		all.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := all.SuggestionsFor(name); len(name) > 1 && len(near) > 0 {
		slices.Sort(near)
		return "--" + near[0]
	}
	return row(foreignFlags, name)
}
