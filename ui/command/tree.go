package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
)

// Annotations of a cobra command.
const (
	noteEffect  = "effect"
	noteConfirm = "confirm"
	noteRole    = "role"
	noteUndo    = "undo"
	noteNeeds   = "needs"
	noteArgs    = "args" // sources of completion for the positional arguments
)

// sourceText is a file that the command reads once, by call.file.
const sourceText = "text"

// noteSource annotates a flag with its source of completion.
const noteSource = "source"

// tree is one tree of commands, made for one run.
type tree struct {
	env  *Env
	ctx  context.Context
	root *cobra.Command
	g    Globals
	all  bool // help of everything is wanted
	// call is the run's state once a command has started, nil before: an
	// error until then is one of usage.
	call *call
}

// spec declares one command.
type spec struct {
	use     string // "show ID", "wait ID…", "list", "show [ID]"
	short   string
	long    string // "" is short
	example string // lines as typed, without "swarmdeck"
	effect  Effect
	role    Role    // "" follows from the effect: Viewer or Operator
	confirm Confirm // "" is ConfirmNone
	undo    string  // the command that takes it back
	needs   string  // the flags that can't be left out
	// args are the sources of completion of the positional arguments, one
	// each; the last one repeats for "ID…".
	args   []string
	anyArg bool // the command checks its own arguments
	// ownScope commands open what they need themselves; for all others the
	// engine is open and the tenant settled when run is called.
	ownScope bool
	// forAgents lets a process of an agent run it, see op.Op.
	forAgents bool
	looks     bool // see op.Op
	stays     bool // it goes on until it is left: a disk that is full does not end it
	flags     func(*pflag.FlagSet)
	// check refuses a mistaken line before anything is opened; nil checks
	// nothing more than the flags' types and the number of arguments.
	check func(c *call, args []string) error
	run   func(c *call, args []string) error
}

// section is a group of commands in help.
type section struct {
	title string
	tops  []top
}

// top is a command at the top of the tree, and what makes it and all below.
type top struct {
	name string
	make func() *cobra.Command
}

func (t *tree) sections() (all []section) {
	own := map[string]func() *cobra.Command{
		"add": t.add, "up": t.up, "serve": t.serve, "demo": t.demo, "attach": t.attach, "mcp": t.mcp, "keys": t.keys, "theme": t.themes,
		"view": t.views, "completion": t.completion, "doctor": t.doctor, "version": t.version,
	}
	beside := map[string][]func() *cobra.Command{ // of nouns, what is no operation
		"agent": {t.agentAttach}, "project": {t.projectInit}, "cad": {t.cadView, t.cadEnv}, "tenant": {t.tenantUse},
	}
	for _, s := range []struct{ title, tops string }{
		{begin, "run add status task agent approval review merge up serve"},
		{"Work", "overview story tell show why log session result host push project role skill subagent bus cad"},
		{"Judge and stop", "decision grant policy egress files budget estop"},
		{"Keep", "audit dag tenant engine operator secret notice store"},
		{"Cockpit and program", "demo attach mcp keys theme view completion doctor version"},
	} {
		of := section{title: s.title}
		for name := range strings.FieldsSeq(s.tops) {
			make := own[name]
			if make == nil {
				make = t.of(name, beside[name]...)
			}
			of.tops = append(of.tops, top{name, make})
		}
		all = append(all, of)
	}
	return all
}

func newTree(env *Env, ctx context.Context) *tree { return treeFor(env, ctx, nil) }

// treeFor is the tree that runs args. All of it takes a millisecond to make,
// so where the first word names a command only that one is there. Completion
// scripts are of them all.
func treeFor(env *Env, ctx context.Context, args []string) *tree {
	t := &tree{env: env, ctx: ctx}
	root := &cobra.Command{
		Use:           "swarmdeck",
		Short:         "A cockpit for swarms of agents",
		Long:          rootHelp,
		Example:       exampleLines("demo\nrun -- date"),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // runCockpit says which command is unknown
		RunE:          t.wrap(spec{stays: true, effect: Reads, role: Viewer, ownScope: true, run: runCockpit}),
		Annotations:   map[string]string{noteEffect: string(Reads), noteRole: string(Viewer), noteConfirm: string(ConfirmNone)},
	}
	t.root = root
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		_, runs := cmd.Annotations[noteEffect]
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && (cmd == root || !runs) && len(words) > 0 {
			return unknownCommand(cmd, words[0]) // its flags are unknown because it is
		}
		return flagError(cmd, err)
	})
	t.globals(root.PersistentFlags())
	sections, only := t.sections(), ""
	if len(args) > 0 && args[0] != "completion" && slices.ContainsFunc(sections, func(s section) bool {
		return slices.ContainsFunc(s.tops, func(c top) bool { return c.name == args[0] })
	}) {
		only = args[0]
	}
	for _, s := range sections {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title + ":"})
		for _, c := range s.tops {
			if only == "" || c.name == only {
				cmd := c.make()
				cmd.GroupID = s.title
				root.AddCommand(cmd)
			}
		}
	}
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != root || t.all {
			whole(cmd, args)
			return
		}
		if err := t.firstHelp(root.OutOrStdout(), sections[0].tops); err != nil {
			root.PrintErrln(err)
		}
	})
	root.SetHelpCommand(t.help())
	root.SetHelpCommandGroupID("Cockpit and program")
	root.InitDefaultHelpCmd()
	return t
}

const rootHelp = `swarmdeck without a command opens the cockpit.

Every command also works as a line of the cockpit's ":" palette and of a script.
Exit codes: 0 ok, 1 failed, 2 usage, 3 data file, 4 timed out, 130 interrupted.`

func (t *tree) globals(f *pflag.FlagSet) {
	f.StringVar(&t.g.Data, "data", "", "data `FILE`, or postgres://… (env SWARMDECK_DATA; default $XDG_DATA_HOME/swarmdeck/swarmdeck.db)")
	f.StringVar(&t.g.Tenant, "tenant", "", "tenant `ID` to work in (env SWARMDECK_TENANT; default that of tenant use, or the first)")
	enumVar(f, &t.g.Output, "output", "o", "text", "how to print: text|json|wide; sentence for what a change came to", "text", "json", "wide", "sentence")
	f.StringVar(&t.g.As, "as", "", "operator `NAME` to act as: one of this user's, or one whose key is at hand (default the OS user)")
	f.StringVar(&t.g.Key, "key", "", "private key `FILE` that proves --as and signs answers (default those of ssh-agent)")
	f.BoolVar(&t.g.ReadOnly, "read-only", false, "refuse every command that would change something")
	enumVar(f, &t.g.Color, "color", "", "auto", "colours: auto|always|never", "auto", "always", "never")
	f.BoolVar(&t.g.ASCII, "ascii", false, "draw with ASCII only")
	f.StringVar(&t.g.Theme, "theme", "", "cockpit theme `NAME`")
	f.BoolVar(&t.g.Accessible, "accessible", false, "plain lines instead of a full screen")
	f.StringVar(&t.g.Script, "script", "", "run a script `FILE` (- is stdin) on a headless cockpit")
	f.BoolVar(&t.g.Update, "update", false, "with --script: rewrite its expected screens")
	f.BoolVar(&t.g.Show, "show", false, "with --script: play it visibly")
	source(f, "tenant", "tenant")
	source(f, "theme", "theme")
	source(f, "data", "file")
	source(f, "script", "file")
	source(f, "key", "file")
}

// group makes a command that only holds others.
func (t *tree) group(use, short string, subs ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	g.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("command", "%s: which command? one of %s", commandPath(cmd), strings.Join(names(cmd), ", "))
		}
		return unknownCommand(cmd, args[0])
	}
	g.AddCommand(subs...)
	return g
}

func names(cmd *cobra.Command) []string {
	return core.Map(cmd.Commands(), func(s *cobra.Command) string { return s.Name() })
}

// command makes a runnable command.
func (t *tree) command(s spec) *cobra.Command {
	if s.role == "" {
		s.role = Viewer
		if s.effect != Reads {
			s.role = Operator
		}
	}
	s.confirm = cmp.Or(s.confirm, ConfirmNone)
	cmd := &cobra.Command{
		Use: s.use, Short: s.short, Long: s.long, Example: exampleLines(s.example),
		Args: positional(s), RunE: t.wrap(s),
		Annotations: map[string]string{
			noteEffect: string(s.effect), noteRole: string(s.role), noteConfirm: string(s.confirm),
			noteArgs: strings.Join(s.args, " "), noteUndo: s.undo, noteNeeds: s.needs,
		},
	}
	if s.flags != nil {
		s.flags(cmd.Flags())
	}
	return cmd
}

// positional derives the check of arguments from the words of use.
func positional(s spec) cobra.PositionalArgs {
	if s.anyArg {
		return cobra.ArbitraryArgs
	}
	names := strings.Fields(s.use)[1:]
	return func(cmd *cobra.Command, args []string) error {
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				return core.Errorf(core.InvalidInput, "%s: %s is missing; usage: %s", commandPath(cmd), strings.TrimSuffix(name, "…"), cmd.UseLine()).With("field", strings.ToLower(strings.Trim(name, "[]…")))
			}
		}
		many := len(names) > 0 && strings.Contains(names[len(names)-1], "…")
		if len(args) > len(names) && !many {
			return core.Errorf(core.InvalidInput, "%s: unexpected argument %q; usage: %s", commandPath(cmd), core.Clip(args[len(names)]), cmd.UseLine()).With("field", "args")
		}
		return nil
	}
}

// wrap makes the function cobra calls for a command.
func (t *tree) wrap(s spec) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := t.begin(cmd, s)
		if err != nil {
			return err
		}
		t.call = c
		return c.do(s, args)
	}
}

// exampleLines are an example's lines as help prints them.
func exampleLines(lines string) string {
	if lines == "" {
		return ""
	}
	return "  swarmdeck " + strings.ReplaceAll(lines, "\n", "\n  swarmdeck ")
}

// find returns the command that args name, or nil.
func (t *tree) find(args []string) *cobra.Command {
	cmd, _, err := t.root.Find(args)
	if err != nil || cmd == nil {
		return nil
	}
	return cmd
}

// source names where the values of a flag come from, for completion.
func source(f *pflag.FlagSet, flag, from string) {
	fl := f.Lookup(flag)
	if fl.Annotations == nil {
		fl.Annotations = map[string][]string{}
	}
	fl.Annotations[noteSource] = []string{from}
}

// enum is a string flag with a closed set of values.
type enum struct {
	value   *string
	allowed []string
}

func enumVar(f *pflag.FlagSet, p *string, name, short, def, usage string, allowed ...string) {
	*p = def
	f.VarP(&enum{value: p, allowed: allowed}, name, short, usage)
	source(f, name, "enum:"+strings.Join(allowed, ","))
}

func (e *enum) String() string { return *e.value }
func (e *enum) Type() string   { return "WORD" }
func (e *enum) Set(s string) error {
	if !slices.Contains(e.allowed, s) {
		return fmt.Errorf("allowed: %s", strings.Join(e.allowed, ", "))
	}
	*e.value = s
	return nil
}
