// Package effect tells what an action does by how it looks: the commands of a command
// line, the text of a shell, the name and the arguments of a tool. It errs on the grave
// side, and is advice: an interpreter can hide anything.
package effect

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// Effects that the code itself gives; the lists may give any of names.
const (
	Read   = "read"
	Write  = "write"
	Exec   = "exec"
	Opaque = "opaque" // hides what it runs
	Secret = "secret" // touches what may be secret
	Havoc  = "catastrophe"

	Publish = "publish" // reaches others
)

const names = "read, write, exec, opaque, secret, catastrophe, destroy, publish, escalate, spend"

// known refuses what is no effect.
func known(field, effect string) error {
	if !slices.Contains(strings.Split(names, ", "), effect) {
		return core.Invalid(field, effect, names)
	}
	return nil
}

// Lists say what commands and tools do, as a policy has them.
type Lists struct {
	Commands    []Command `yaml:"commands" json:"commands,omitempty"`
	Wrappers    []Wrapper `yaml:"wrappers" json:"wrappers,omitempty"`
	Shells      []string  `yaml:"shells" json:"shells,omitempty"`
	SystemDirs  []string  `yaml:"system_dirs" json:"system_dirs,omitempty"`
	Roots       []string  `yaml:"roots" json:"roots,omitempty"`
	Devices     []string  `yaml:"devices" json:"devices,omitempty"`
	SecretPaths []string  `yaml:"secret_paths" json:"secret_paths,omitempty"`
	Data        []string  `yaml:"data" json:"data,omitempty"` // what takes its input and words for no more than data
	Tools       []Tools   `yaml:"tools" json:"tools,omitempty"`
}

// Bounds of what is looked into; past them the effect is opaque.
const (
	maxShellText = 64 << 10
	maxNesting   = 8
	maxBrackets  = 200
	maxBraced    = 4096 // of one command
)

// Classifier tells effects by lists. It never changes.
type Classifier struct {
	exact    map[string][]*Command
	prefixed []*Command // some name ends with *
	wrappers map[string]*Wrapper
	shells   map[string]bool
	dirs     map[string]bool
	roots    map[string]bool
	devices  []string
	secrets  []string
	data     []string
	tools    map[string][]string // effects by whole name
	words    map[string][]string // effects by word in the name
}

// New checks lists and takes them over.
func New(l *Lists) (*Classifier, error) {
	c := &Classifier{
		exact: map[string][]*Command{}, wrappers: map[string]*Wrapper{},
		shells: set(l.Shells), dirs: set(l.SystemDirs), roots: set(l.Roots),
		devices: l.Devices, secrets: l.SecretPaths, data: l.Data,
		tools: map[string][]string{}, words: map[string][]string{},
	}
	for i := range l.Commands {
		k := &l.Commands[i]
		if err := known("commands.effect", k.Effect); err != nil {
			return nil, err
		}
		if len(k.Names) == 0 {
			return nil, core.Invalid("commands.names", "", "at least one program name")
		}
		if k.Match != "" {
			var err error
			if k.match, err = regexp.Compile(k.Match); err != nil {
				return nil, core.Invalid("commands.match", k.Match, "a regular expression")
			}
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
	for i := range l.Wrappers {
		c.wrappers[l.Wrappers[i].Name] = &l.Wrappers[i]
	}
	return c, c.addTools(l.Tools)
}

func set(of []string) map[string]bool {
	m := make(map[string]bool, len(of))
	for _, s := range of {
		m[s] = true
	}
	return m
}

// Runs reports whether a program runs what its words say.
func (c *Classifier) Runs(program string) bool {
	return c.shells[program] || c.wrappers[program] != nil || program == "find"
}

// OfCall lists the effects of a tool of a server, called by a task with its arguments
// below "args". Its name, which the server chose, makes it graver and never harmless:
// that it reads is declared.
func (c *Classifier) OfCall(tool string, args core.Raw, declared []string) []string {
	var found effects
	if found.unknown = !slices.Contains(declared, Read); !found.unknown {
		found.add(Read)
	}
	var in struct {
		Args core.Raw `json:"args"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		found.add(Opaque)
	} else {
		c.tool(&found, tool, in.Args, declared)
	}
	return found.list()
}

// OfSkill lists what the skills of an action declare, what the commands among
// them do that no declaration covers (that one reads or writes is in its "exec"
// already), and whether what is read may be secret.
func (c *Classifier) OfSkill(args core.Raw, declared []string) []string {
	var found effects
	var in struct {
		Plan []struct {
			Runner struct {
				Argv []string `json:"argv"`
				Dir  string   `json:"dir"`
			} `json:"runner"`
		} `json:"plan"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		found.add(Opaque)
	}
	for _, p := range in.Plan {
		if len(p.Runner.Argv) > 0 && p.Runner.Argv[0] != "" {
			c.run(&found, command{words: p.Runner.Argv, dir: p.Runner.Dir}, "", 0)
		}
	}
	var values map[string]any
	if len(declared) > 0 && json.Unmarshal(args, &values) == nil && anyString(values, c.secret) {
		found.add(Secret)
	}
	all := slices.DeleteFunc(found.list(), func(effect string) bool { return effect == Read || effect == Write })
	all = append(all, declared...)
	slices.Sort(all)
	return slices.Compact(all)
}

// OfCommand lists the effects of a command with its directory, environment and input:
// {"argv","dir","env","stdin"}.
func (c *Classifier) OfCommand(args core.Raw) []string {
	var found effects
	var in struct {
		Argv  []string       `json:"argv"`
		Dir   string         `json:"dir"`
		Env   map[string]any `json:"env"`
		Stdin string         `json:"stdin"`
	}
	if err := json.Unmarshal(args, &in); err != nil || len(in.Argv) == 0 || in.Argv[0] == "" {
		return []string{Opaque}
	}
	found.unknown = len(in.Env) > 0 // PATH, LD_PRELOAD, GIT_EXTERNAL_DIFF, …
	dir := ""
	if strings.HasPrefix(in.Dir, "/") {
		dir = in.Dir
	}
	c.run(&found, command{words: in.Argv, dir: dir}, in.Stdin, 0)
	return found.list()
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
		e.names = slices.DeleteFunc(e.names, func(n string) bool { return n == Read })
	}
	slices.Sort(e.names)
	return e.names
}

// run adds the effects of one command and of the commands it starts.
func (c *Classifier) run(found *effects, cmd command, stdin string, depth int) {
	for len(cmd.words) > 0 && depth > 0 && isAssignment(cmd.words[0]) {
		cmd.words = cmd.words[1:]
		found.unknown = true
	}
	if len(cmd.words) == 0 {
		return
	}
	if depth > maxNesting {
		found.add(Opaque)
		return
	}
	name := cmd.name()
	known := false
	for _, k := range c.classes(name) {
		if k.Effect == Read && (depth > 0 || !c.fromSystem(cmd.words[0])) {
			continue
		}
		if k.matches(cmd, c) {
			found.add(k.Effect)
			known = known || k.Effect == Read
		}
	}
	if !known {
		found.unknown = true
	}
	if slices.ContainsFunc(cmd.words[1:], c.secret) {
		found.add(Secret)
	}
	switch {
	case c.shells[name]:
		c.shell(found, cmd, stdin, depth)
	case name == "eval" && depth > 0:
		c.text(found, strings.Join(cmd.words[1:], " "), cmd.dir, depth+1)
	case unreadable(cmd.words[0]):
		found.add(Opaque)
		for _, w := range cmd.words[1:] {
			if slices.Contains(c.words[strings.ToLower(w)], Publish) {
				found.add(Publish)
			}
		}
	case name == "find":
		c.findExec(found, cmd, depth)
	case c.wrappers[name] != nil:
		c.wrapped(found, c.wrappers[name], cmd, stdin, depth)
	}
}

// unreadable reports a program that is known only when it runs.
func unreadable(program string) bool {
	return strings.ContainsAny(program, "$`*?") || strings.Contains(program, "[") && strings.Contains(program, "]")
}

// wrapped adds the effects of what a wrapper runs.
func (c *Classifier) wrapped(found *effects, by *Wrapper, cmd command, stdin string, depth int) {
	words := inner(by, cmd.words)
	for i, w := range cmd.words[:len(cmd.words)-len(words)] {
		for _, option := range by.Text {
			if text, is := valueOf(option, w); is {
				c.text(found, text+" "+strings.Join(cmd.words[i+1:], " "), cmd.dir, depth+1)
			}
		}
	}
	switch {
	case !by.Shell:
		c.run(found, command{words: words, dir: cmd.dir, piped: cmd.piped}, stdin, depth+1)
	case len(words) > 0: // what ::: ends is run with what follows, or what follows is
		c.text(found, strings.ReplaceAll(strings.Join(words, " "), ":::", "\n"), cmd.dir, depth+1)
	case stdin != "" || cmd.piped:
		found.add(Opaque)
	}
}

// valueOf is what a word may have of an option's value, short ones bundled and long ones
// cut short.
func valueOf(option, w string) (value string, is bool) {
	if strings.HasPrefix(option, "--") {
		name, value, _ := strings.Cut(w, "=")
		return value, len(name) > 3 && strings.HasPrefix(option, name)
	}
	if len(w) < 2 || w[0] != '-' || w[1] == '-' {
		return "", false
	}
	_, value, is = strings.Cut(w[1:], option[1:])
	return value, is
}

func (c *Classifier) classes(name string) []*Command {
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
func (c *Classifier) fromSystem(program string) bool {
	return !strings.Contains(program, "/") || path.Clean(program) == program && c.dirs[path.Dir(program)]
}

func (c *Classifier) secret(word string) bool {
	return slices.ContainsFunc(c.secrets, func(s string) bool { return strings.Contains(word, s) })
}

// shell looks into the text a shell is given by -c or on its input.
func (c *Classifier) shell(found *effects, cmd command, stdin string, depth int) {
	inline, values := false, 0
	for i, w := range cmd.words[1:] {
		if values > 0 {
			values--
			continue
		}
		if !strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "+") {
			if inline {
				c.text(found, w, cmd.dir, depth+1)
			}
			return // else a script file, with its arguments
		}
		if w == "--" && i+2 < len(cmd.words) && !inline {
			return
		}
		if !strings.HasPrefix(w, "--") {
			inline = inline || strings.Contains(w, "c")
			values = strings.Count(w, "o") + strings.Count(w, "O")
		} else if w == "--rcfile" || w == "--init-file" {
			values = 1
		}
	}
	if stdin != "" {
		c.text(found, stdin, cmd.dir, depth+1)
	} else if cmd.piped {
		found.add(Opaque)
	}
}

func (c *Classifier) findExec(found *effects, cmd command, depth int) {
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
func inner(w *Wrapper, words []string) []string {
	words = words[1:]
	own := w.Operands
	for len(words) > 0 {
		first := words[0]
		switch {
		case slices.Contains(w.Looks, first):
			return nil
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
