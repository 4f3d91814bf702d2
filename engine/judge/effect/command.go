package effect

import (
	"path"
	"slices"
	"strings"
)

// Command says what programs do. All conditions given must hold.
type Command struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names"` // a trailing * matches a prefix
	// Sub is the first word after the program that is neither an option nor the value
	// of one in SkipValue; after another option it may be the next one too.
	Sub       []string `yaml:"sub" json:"sub,omitempty"`
	SkipValue []string `yaml:"skip_value" json:"skip_value,omitempty"`
	With      []string `yaml:"with" json:"with,omitempty"`       // at least one of these options
	Without   []string `yaml:"without" json:"without,omitempty"` // none of these options
	// OperandPrefix wants an operand that starts with one of these.
	OperandPrefix []string `yaml:"operand_prefix" json:"operand_prefix,omitempty"`
	// OperandsStart wants every operand to start with this.
	OperandsStart string `yaml:"operands_start" json:"operands_start,omitempty"`
	MaxOperands   int    `yaml:"max_operands" json:"max_operands,omitempty"` // 0 means any number
	Root          bool   `yaml:"root" json:"root,omitempty"`                 // an operand is one of the table's roots
	Device        bool   `yaml:"device" json:"device,omitempty"`             // an operand is one of the table's devices
}

// Wrapper is a program that runs the command line after its own options.
type Wrapper struct {
	Name     string   `yaml:"name" json:"name"`
	Values   []string `yaml:"values" json:"values,omitempty"`     // options that take a value
	Operands int      `yaml:"operands" json:"operands,omitempty"` // own operands before the command
	Text     []string `yaml:"text" json:"text,omitempty"`         // options whose value is split as a shell does
}

// command is one program with its arguments.
type command struct {
	words []string
	dir   string
	piped bool // reads another command's output
}

func (c command) name() string { return path.Base(c.words[0]) }

func (c command) operands() []string {
	var out []string
	rest := false
	for _, w := range c.words[1:] {
		switch {
		case rest || w == "-" || !strings.HasPrefix(w, "-"):
			out = append(out, w)
		case w == "--":
			rest = true
		}
	}
	return out
}

// has reports whether an option may be among the words. It errs on the side
// of yes: abbreviated long options and bundled short ones count.
func (c command) has(option string) bool {
	for _, w := range c.words[1:] {
		if w == "--" {
			return false
		}
		if w == option {
			return true
		}
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		name, _, _ := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "--"):
			if strings.HasPrefix(option, "--") && len(name) > 3 && strings.HasPrefix(option, name) || name == option {
				return true
			}
		case len(option) == 2 && option[0] == '-' && strings.IndexByte(w, option[1]) > 0:
			return true
		case name == option:
			return true
		}
	}
	return false
}

func (k *Command) matches(c command, in *Classifier) bool {
	switch {
	case len(k.Sub) > 0 && !k.subcommand(c),
		len(k.With) > 0 && !slices.ContainsFunc(k.With, c.has),
		slices.ContainsFunc(k.Without, c.has):
		return false
	case len(k.OperandPrefix) == 0 && k.OperandsStart == "" && k.MaxOperands == 0 && !k.Root && !k.Device:
		return true
	}
	operands := c.operands()
	return (k.MaxOperands == 0 || len(operands) <= k.MaxOperands) &&
		(k.OperandsStart == "" || !slices.ContainsFunc(operands, func(o string) bool { return !strings.HasPrefix(o, k.OperandsStart) })) &&
		(len(k.OperandPrefix) == 0 || slices.ContainsFunc(operands, func(o string) bool { return startsWithAny(o, k.OperandPrefix) })) &&
		(!k.Root || slices.ContainsFunc(operands, func(o string) bool { return in.roots[cleaned(o, c.dir)] })) &&
		(!k.Device || slices.ContainsFunc(operands, func(o string) bool { return startsWithAny(o, in.devices) }))
}

// subcommand reports whether the command may be one of Sub.
func (k *Command) subcommand(c command) bool {
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		switch {
		case slices.Contains(k.SkipValue, w):
			i++
		case strings.HasPrefix(w, "-"):
		case slices.Contains(k.Sub, w):
			return true
		case !strings.HasPrefix(c.words[i-1], "-"):
			return false
		}
	}
	return false
}

func startsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// cleaned is the directory that an operand means: "/etc/*", "/etc/." and
// "//etc/" all are "/etc".
func cleaned(operand, dir string) string {
	if dir != "" && !strings.HasPrefix(operand, "/") && !strings.HasPrefix(operand, "~") && !strings.HasPrefix(operand, "$") {
		operand = dir + "/" + operand
	}
	for {
		p := path.Clean(operand)
		trimmed := strings.TrimSuffix(strings.TrimSuffix(p, "/*"), "/.*")
		if trimmed == "" {
			return "/"
		}
		if trimmed == operand {
			return trimmed
		}
		operand = trimmed
	}
}
