package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/ui/term"
)

// Candidate is one way to go on. Text replaces the word under the cursor, or all of the
// line where it is several words.
type Candidate struct {
	Text string
	Help string
}

// maxCandidates bounds what one completion looks up and returns.
const maxCandidates = 100

// Complete says how the last word of a line may go on: commands, flags, the
// values of enumerations, and live ids. A line that ends in a blank asks for
// the next word. What begins no command finds commands by words of their names and of
// what they do, in any order. An engine that can't be opened just has no ids to offer.
func Complete(ctx context.Context, env *Env, line string) []Candidate {
	words, open, _ := scan(line)
	last := ""
	if open {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	found := complete(ctx, env, words, last)
	for i := range found {
		found[i].Text = core.Quote(found[i].Text)
	}
	if slices.ContainsFunc(found, func(c Candidate) bool { return strings.HasPrefix(c.Text, last) }) {
		return found
	}
	return append(found, search(ctx, env, append(words, last))...)
}

// maxFound bounds what a search shows.
const maxFound = 20

// search finds commands in which all words occur, those with them in their names first.
// A line that names a command already finds none.
func search(ctx context.Context, env *Env, words []string) []Candidate {
	t := newTree(env, ctx)
	if at := t.position(words); at.cmd != t.root || len(at.args) != len(words) || at.dashes {
		return nil
	}
	var named, does []Candidate
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		for _, sub := range cmd.Commands() {
			if name := strings.TrimSpace(path + " " + sub.Name()); !sub.Hidden {
				switch found := (Candidate{name, term.Clean(sub.Short)}); {
				case sub.HasSubCommands():
				case Holds(name, words):
					named = append(named, found)
				case Holds(name+" "+sub.Short, words):
					does = append(does, found)
				}
				walk(sub, name)
			}
		}
	}
	walk(t.root, "")
	named = append(named, does...)
	return named[:min(len(named), maxFound)]
}

// Holds says whether all words occur in a text.
func Holds(text string, words []string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) })
}

// complete works on words that are already split.
func complete(ctx context.Context, env *Env, words []string, last string) []Candidate {
	t := newTree(env, ctx)
	at := t.position(words)
	var all []Candidate
	switch {
	case at.flag != nil:
		return t.values(at, sourceOf(at.flag), last)
	case at.dashes:
		return nil
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		name, value, _ := strings.Cut(last, "=")
		flag := at.cmd.Flag(strings.TrimPrefix(name, "--"))
		if flag == nil {
			return nil
		}
		all = t.values(at, sourceOf(flag), value)
		for i := range all {
			all[i].Text = name + "=" + all[i].Text
		}
		return all
	case strings.HasPrefix(last, "-"):
		return matching(flagsOf(at), last)
	}
	for _, sub := range at.cmd.Commands() {
		if !sub.Hidden {
			all = append(all, Candidate{sub.Name(), sub.Short})
		}
	}
	if len(all) > 0 && len(at.args) == 0 {
		return matching(all, last)
	}
	if from := argSource(at); from != "" {
		return t.values(at, from, last)
	}
	return nil
}

// position is where in a line the next word stands.
type position struct {
	cmd    *cobra.Command
	args   []string        // positional arguments so far
	flag   *pflag.Flag     // whose value comes next, or nil
	given  map[string]bool // flags so far
	dashes bool            // after --
}

// position walks the words the way the parser would, forgiving mistakes.
func (t *tree) position(words []string) position {
	at := position{cmd: t.root, given: map[string]bool{}}
	for _, w := range words {
		switch {
		case at.flag != nil:
			_ = at.flag.Value.Set(w) // a wrong value is reported when the line runs
			at.flag = nil
		case at.dashes:
			at.args = append(at.args, w)
		case w == "--":
			at.dashes = true
		case len(w) > 1 && w[0] == '-':
			name, value, has := strings.Cut(strings.TrimLeft(w, "-"), "=")
			flag := at.cmd.Flag(name)
			if flag == nil && !strings.HasPrefix(w, "--") {
				flag = at.cmd.Flags().ShorthandLookup(name[:1])
				if flag == nil {
					flag = t.root.PersistentFlags().ShorthandLookup(name[:1])
				}
			}
			if flag == nil {
				continue
			}
			at.given[flag.Name] = true
			if has {
				_ = flag.Value.Set(value)
			} else if flag.NoOptDefVal == "" {
				at.flag = flag
			} else {
				_ = flag.Value.Set(flag.NoOptDefVal)
			}
		default:
			if len(at.args) == 0 {
				if sub := child(at.cmd, w); sub != nil {
					at.cmd = sub
					continue
				}
			}
			at.args = append(at.args, w)
		}
	}
	return at
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	all := cmd.Commands()
	if i := slices.Index(names(cmd), name); i >= 0 {
		return all[i]
	}
	return nil
}

func flagsOf(at position) []Candidate {
	var all []Candidate
	add := func(f *pflag.Flag) {
		_, many := f.Value.(pflag.SliceValue)
		if !f.Hidden && (many || !at.given[f.Name]) {
			all = append(all, Candidate{"--" + f.Name, f.Usage})
		}
	}
	at.cmd.LocalNonPersistentFlags().VisitAll(add)
	at.cmd.InheritedFlags().VisitAll(add)
	if !at.cmd.HasParent() {
		at.cmd.PersistentFlags().VisitAll(add)
	}
	return all
}

// argSource is where the next positional argument's values come from.
func argSource(at position) string {
	sources := strings.Split(at.cmd.Annotations[noteArgs], " ")
	names := strings.Fields(at.cmd.Use)
	i := len(at.args)
	if i < len(sources) {
		return sources[i]
	}
	if strings.Contains(names[len(names)-1], "…") {
		return sources[len(sources)-1]
	}
	return ""
}

func sourceOf(f *pflag.Flag) string {
	if s := f.Annotations[noteSource]; len(s) > 0 {
		return s[0]
	}
	return ""
}

// values lists what a source offers.
func (t *tree) values(at position, from, last string) []Candidate {
	kind, detail, _ := strings.Cut(from, ":")
	switch kind {
	case "":
		return nil
	case "enum":
		return matching(texts(strings.Split(detail, ",")), last)
	case "file", sourceText, "dir", "json": // of json @FILE is one way
		return t.files(kind == "dir", last)
	case "command":
		cmd := t.find(at.args)
		if cmd == nil {
			return nil
		}
		var all []Candidate
		if !cmd.HasParent() {
			files, _ := topicFiles.ReadDir("topics")
			for _, file := range files {
				all = append(all, Candidate{Text: strings.TrimSuffix(file.Name(), ".txt")})
			}
		}
		for _, sub := range cmd.Commands() {
			all = append(all, Candidate{sub.Name(), sub.Short})
		}
		return matching(all, last)
	}
	if strings.HasPrefix(kind, "agent-") && len(at.args) > 0 {
		detail = at.args[0]
	}
	all := t.static(kind)
	if all == nil {
		all = t.live(kind, detail)
	}
	return matching(all, last)
}

// matching keeps what begins with the word, or else what contains it.
func matching(all []Candidate, word string) []Candidate {
	for _, fits := range []func(string) bool{
		func(s string) bool { return strings.HasPrefix(s, word) },
		func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(word)) },
	} {
		var kept []Candidate
		for _, c := range all {
			if fits(c.Text) && len(kept) < maxCandidates {
				c.Help = term.Clean(c.Help)
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 {
			return kept
		}
	}
	return nil
}

// Completing says whether a line is a shell's question, which nobody waits long
// for.
func Completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// shellComplete answers the completion scripts of shells, which call the
// program with __complete and the words so far. An engine in another process
// knows what is there: the line is then that one's to answer.
func shellComplete(ctx context.Context, env *Env, args []string) int {
	words, last := args[1:], ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	var elsewhere *ExitError
	mine := *env
	if open := env.Open; open != nil {
		mine.Open = func(ctx context.Context, need Need) (*engine.Engine, error) {
			eng, err := open(ctx, need)
			errors.As(err, &elsewhere)
			return eng, err
		}
	}
	env = &mine
	const noFiles, dirsOnly = cobra.ShellCompDirectiveNoFileComp, cobra.ShellCompDirectiveFilterDirs
	directive := noFiles
	t := newTree(env, ctx)
	at := t.position(words)
	from := argSource(at)
	if at.flag != nil {
		from = sourceOf(at.flag)
	}
	var found []Candidate
	switch {
	case (from == "file" || from == sourceText || from == "json") && !strings.HasPrefix(last, "-"): // the shell knows files better
		directive = cobra.ShellCompDirectiveDefault
	case from == "dir":
		directive = dirsOnly
	default:
		found = complete(ctx, env, slices.Clone(words), last)
	}
	if elsewhere != nil {
		return elsewhere.Code
	}
	for _, c := range found {
		if args[0] == cobra.ShellCompNoDescRequestCmd || c.Help == "" {
			fmt.Fprintln(env.Stdout, c.Text)
		} else {
			fmt.Fprintf(env.Stdout, "%s\t%s\n", c.Text, c.Help)
		}
	}
	fmt.Fprintf(env.Stdout, ":%d\n", directive)
	return ExitOK
}
