package judge

import (
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// Effects that the code itself gives; the table's lists may give any.
const (
	effectRead   = "read"
	effectWrite  = "write"
	effectExec   = "exec"
	effectOpaque = "opaque" // hides what it runs
	effectSecret = "secret" // touches what may be secret
	effectHavoc  = "catastrophe"
)

// Task kinds that rules look into: a local command, a skill with what it
// depends on, a tool of a server, and an operation of a CAD agent.
const (
	KindExec  = "exec.run"
	KindSkill = "skill.invoke"
	KindMCP   = "mcp.call" // a tool of a server; its arguments lie in args
	KindCAD   = "cad.operation"
	// KindIntent is what an agent wants of the controller.
	KindIntent = "intent"
	// KindNet is a connection to a host; its tool is HOST:PORT.
	KindNet = "net.connect"
	// KindTool is a tool that an agent calls.
	KindTool = "tool"
	// KindGrant is a Grant, which its arguments hold.
	KindGrant = "grant"
	// KindQuestion is a Question, which its arguments hold.
	KindQuestion = "question"
)

var effectNames = []string{
	effectRead, effectWrite, effectExec, effectOpaque, effectSecret, effectHavoc,
	"destroy", "publish", "escalate", "spend",
}

// Bounds of what is looked into; past them the effect is opaque.
const (
	maxShellText = 64 << 10
	maxNesting   = 8
	maxBrackets  = 200
	maxBraced    = 4096 // of one command
)

// classifier turns an action into its effects by the table's lists.
type classifier struct {
	exact    map[string][]*commandClass
	prefixed []*commandClass // some name ends with *
	wrappers map[string]*wrapper
	shells   map[string]bool
	dirs     map[string]bool
	roots    map[string]bool
	devices  []string
	secrets  []string
	tools    map[string][]string // effects by whole name
	words    map[string][]string // effects by word in the name
}

func newClassifier(f *tableFile) (*classifier, error) {
	c := &classifier{
		exact: map[string][]*commandClass{}, wrappers: map[string]*wrapper{},
		shells: set(f.Shells), dirs: set(f.SystemDirs), roots: set(f.Roots),
		devices: f.Devices, secrets: f.SecretPaths,
		tools: map[string][]string{}, words: map[string][]string{},
	}
	for i := range f.Commands {
		k := &f.Commands[i]
		if !slices.Contains(effectNames, k.Effect) {
			return nil, core.Invalid("commands.effect", k.Effect, list(effectNames))
		}
		if len(k.Names) == 0 {
			return nil, core.Invalid("commands.names", "", "at least one program name")
		}
		for _, name := range k.Names {
			if name == "" || strings.Contains(name, "/") {
				return nil, core.Invalid("commands.names", name, "program names without a directory")
			}
			if !strings.HasSuffix(name, "*") {
				c.exact[name] = append(c.exact[name], k)
			} else if !slices.Contains(c.prefixed, k) {
				c.prefixed = append(c.prefixed, k)
			}
		}
	}
	for i := range f.Wrappers {
		c.wrappers[f.Wrappers[i].Name] = &f.Wrappers[i]
	}
	return c, c.addTools(f.Tools)
}

func set(of []string) map[string]bool {
	m := make(map[string]bool, len(of))
	for _, s := range of {
		m[s] = true
	}
	return m
}

// of lists the effects of an action, sorted. None means unknown.
func (c *classifier) of(a *Action) []string {
	found := effects{}
	switch a.Kind {
	case KindExec:
		c.execArgs(&found, a.Args)
	case KindSkill:
		return c.skill(a)
	case KindMCP:
		c.call(&found, a)
	case KindCAD:
		return slices.Sorted(slices.Values(a.Effects)) // whoever asks knows the methods
	default:
		c.tool(&found, a)
	}
	return found.list()
}

// call adds the effects of a tool of a server, called by a task. Its name, which the
// server chose, makes it graver and never harmless: that it reads is declared.
func (c *classifier) call(found *effects, a *Action) {
	if found.unknown = !slices.Contains(a.Effects, effectRead); !found.unknown {
		found.add(effectRead)
	}
	var in struct {
		Args core.Raw `json:"args"`
	}
	if err := json.Unmarshal(a.Args, &in); err != nil {
		found.add(effectOpaque)
		return
	}
	inner := *a
	inner.Args = in.Args
	c.tool(found, &inner)
}

// skill lists what the skills of an action declare, what the commands among
// them do that no declaration covers (that one reads or writes is in its "exec"
// already), and whether what is read may be secret.
func (c *classifier) skill(a *Action) []string {
	var found effects
	var in struct {
		Plan []struct {
			Runner struct {
				Argv []string `json:"argv"`
				Dir  string   `json:"dir"`
			} `json:"runner"`
		} `json:"plan"`
	}
	if err := json.Unmarshal(a.Args, &in); err != nil {
		found.add(effectOpaque)
	}
	for _, p := range in.Plan {
		if len(p.Runner.Argv) > 0 && p.Runner.Argv[0] != "" {
			c.run(&found, command{words: p.Runner.Argv, dir: p.Runner.Dir}, "", 0)
		}
	}
	var args map[string]any
	if len(a.Effects) > 0 && json.Unmarshal(a.Args, &args) == nil && anyString(args, c.secret) {
		found.add(effectSecret)
	}
	names := slices.DeleteFunc(found.list(), func(effect string) bool { return effect == effectRead || effect == effectWrite })
	names = append(names, a.Effects...)
	slices.Sort(names)
	return slices.Compact(names)
}

// effects collects; reading survives only when everything reads.
type effects struct {
	names   []string
	unknown bool
}

func (e *effects) add(name string) {
	if !slices.Contains(e.names, name) {
		e.names = append(e.names, name)
	}
}

func (e *effects) list() []string {
	if e.unknown || len(e.names) > 1 {
		e.names = slices.DeleteFunc(e.names, func(n string) bool { return n == effectRead })
	}
	slices.Sort(e.names)
	return e.names
}

// execArgs reads the arguments of exec.run.
func (c *classifier) execArgs(found *effects, args core.Raw) {
	var in struct {
		Argv  []string       `json:"argv"`
		Dir   string         `json:"dir"`
		Env   map[string]any `json:"env"`
		Stdin string         `json:"stdin"`
	}
	if err := json.Unmarshal(args, &in); err != nil || len(in.Argv) == 0 || in.Argv[0] == "" {
		found.add(effectOpaque)
		return
	}
	if len(in.Env) > 0 {
		found.unknown = true // PATH, LD_PRELOAD, GIT_EXTERNAL_DIFF, …
	}
	dir := ""
	if strings.HasPrefix(in.Dir, "/") {
		dir = in.Dir
	}
	c.run(found, command{words: in.Argv, dir: dir}, in.Stdin, 0)
}

// run adds the effects of one command and of the commands it starts.
func (c *classifier) run(found *effects, cmd command, stdin string, depth int) {
	for len(cmd.words) > 0 && depth > 0 && isAssignment(cmd.words[0]) {
		cmd.words = cmd.words[1:]
		found.unknown = true
	}
	if len(cmd.words) == 0 {
		return
	}
	if depth > maxNesting {
		found.add(effectOpaque)
		return
	}
	name := cmd.name()
	known := false
	for _, k := range c.classes(name) {
		if k.Effect == effectRead && (depth > 0 || !c.fromSystem(cmd.words[0])) {
			continue
		}
		if k.matches(cmd, c) {
			found.add(k.Effect)
			known = known || k.Effect == effectRead
		}
	}
	if !known {
		found.unknown = true
	}
	if slices.ContainsFunc(cmd.words[1:], c.secret) {
		found.add(effectSecret)
	}
	switch {
	case c.shells[name]:
		c.shell(found, cmd, stdin, depth)
	case name == "eval" && depth > 0:
		c.text(found, strings.Join(cmd.words[1:], " "), cmd.dir, depth+1)
	case strings.HasPrefix(cmd.words[0], "$"):
		found.add(effectOpaque)
	case name == "find":
		c.findExec(found, cmd, depth)
	case c.wrappers[name] != nil:
		for _, option := range c.wrappers[name].Text {
			for i, w := range cmd.words[1:] {
				if text, is := strings.CutPrefix(w, option); is {
					c.text(found, strings.TrimPrefix(text, "=")+" "+strings.Join(cmd.words[i+2:], " "), cmd.dir, depth+1)
				}
			}
		}
		c.run(found, command{words: inner(c.wrappers[name], cmd.words), dir: cmd.dir, piped: cmd.piped}, stdin, depth+1)
	}
}

func (c *classifier) classes(name string) []*commandClass {
	out := c.exact[name]
	for _, k := range c.prefixed {
		for _, n := range k.Names {
			if p, ok := strings.CutSuffix(n, "*"); ok && strings.HasPrefix(name, p) {
				out = append(slices.Clip(out), k)
				break
			}
		}
	}
	return out
}

// fromSystem: ./ls is not ls.
func (c *classifier) fromSystem(program string) bool {
	return !strings.Contains(program, "/") || path.Clean(program) == program && c.dirs[path.Dir(program)]
}

func (c *classifier) secret(word string) bool {
	return slices.ContainsFunc(c.secrets, func(s string) bool { return strings.Contains(word, s) })
}

// shell looks into the text a shell is given by -c or on its input.
func (c *classifier) shell(found *effects, cmd command, stdin string, depth int) {
	inline := false
	for i, w := range cmd.words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "+") {
			if inline {
				c.text(found, w, cmd.dir, depth+1)
			}
			return // else a script file, with its arguments
		}
		if w == "--" && i+2 < len(cmd.words) && !inline {
			return
		}
		if !strings.HasPrefix(w, "--") && strings.Contains(w, "c") {
			inline = true
		}
	}
	if stdin != "" {
		c.text(found, stdin, cmd.dir, depth+1)
	} else if cmd.piped {
		found.add(effectOpaque)
	}
}

func (c *classifier) findExec(found *effects, cmd command, depth int) {
	for i, w := range cmd.words {
		switch w {
		case "-exec", "-execdir", "-ok", "-okdir":
			rest := cmd.words[i+1:]
			if end := slices.IndexFunc(rest, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				rest = rest[:end]
			}
			c.run(found, command{words: rest, dir: cmd.dir}, "", depth+1)
		}
	}
}

// inner is the command line that a wrapper runs.
func inner(w *wrapper, words []string) []string {
	words = words[1:]
	own := w.Operands
	for len(words) > 0 {
		first := words[0]
		switch {
		case first == "--":
			return words[min(1+own, len(words)):]
		case slices.Contains(w.Values, first) && len(words) > 1:
			words = words[2:]
		case strings.HasPrefix(first, "-") || isAssignment(first):
			words = words[1:]
		case own > 0:
			own--
			words = words[1:]
		default:
			return words
		}
	}
	return nil
}

func isAssignment(w string) bool {
	name, _, ok := strings.Cut(w, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+") == ""
}
