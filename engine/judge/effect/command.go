package effect

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Command says what programs do. All conditions given must hold.
type Command struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names"` // a trailing * matches a prefix
	// Sub is the first word after the program that is neither an option nor the value
	// of one in SkipValue; after another option it may be the next one too. More words
	// follow it, and a trailing * matches a prefix.
	Sub       []string `yaml:"sub" json:"sub,omitempty"`
	Except    []string `yaml:"except" json:"except,omitempty"` // it does not begin with these words; an option stands alone
	SkipValue []string `yaml:"skip_value" json:"skip_value,omitempty"`
	With      []string `yaml:"with" json:"with,omitempty"`       // at least one of these options
	Without   []string `yaml:"without" json:"without,omitempty"` // none of these options
	Match     string   `yaml:"match" json:"match,omitempty"`     // a word after the program has this pattern
	// Away are options by which it goes elsewhere than its words say. Where there are any,
	// it goes elsewhere than to this machine: each word that is neither an option nor the
	// value of one in SkipValue is a host or its port.
	Away []string `yaml:"away" json:"away,omitempty"`
	// OperandPrefix wants an operand that starts with one of these; what is lower here is in any case.
	OperandPrefix []string `yaml:"operand_prefix" json:"operand_prefix,omitempty"`
	// OperandsStart wants every operand to start with this.
	OperandsStart string `yaml:"operands_start" json:"operands_start,omitempty"`
	MaxOperands   int    `yaml:"max_operands" json:"max_operands,omitempty"` // 0 means any number
	Root          bool   `yaml:"root" json:"root,omitempty"`                 // an operand is one of the table's roots
	Device        bool   `yaml:"device" json:"device,omitempty"`             // an operand is one of the table's devices

	match *regexp.Regexp
}

// Wrapper is a program that runs the command line after its own options.
type Wrapper struct {
	Name     string   `yaml:"name" json:"name"`
	Values   []string `yaml:"values" json:"values,omitempty"`     // options that take a value
	Operands int      `yaml:"operands" json:"operands,omitempty"` // own operands before the command
	Text     []string `yaml:"text" json:"text,omitempty"`         // options whose value is split as a shell does
	Shell    bool     `yaml:"shell" json:"shell,omitempty"`       // a shell reads the command line
	Looks    []string `yaml:"looks" json:"looks,omitempty"`       // options with which it runs nothing
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
		slices.ContainsFunc(k.Without, c.has),
		slices.ContainsFunc(k.Except, func(e string) bool { return begins(c.words[1:], e) && (e[0] != '-' || len(c.words) == 2) }),
		k.match != nil && !slices.ContainsFunc(c.words[1:], k.match.MatchString),
		len(k.Away) > 0 && !k.away(c):
		return false
	case len(k.OperandPrefix) == 0 && k.OperandsStart == "" && k.MaxOperands == 0 && !k.Root && !k.Device:
		return true
	}
	operands := c.operands()
	return (k.MaxOperands == 0 || len(operands) <= k.MaxOperands) &&
		(k.OperandsStart == "" || !slices.ContainsFunc(operands, func(o string) bool { return !strings.HasPrefix(o, k.OperandsStart) })) &&
		(len(k.OperandPrefix) == 0 || slices.ContainsFunc(operands, func(o string) bool {
			return startsWithAny(o, k.OperandPrefix) || startsWithAny(strings.ToLower(o), k.OperandPrefix)
		})) &&
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
		case strings.HasPrefix(w, "-") || strings.HasPrefix(w, "+"): // cargo +nightly
		case slices.ContainsFunc(k.Sub, func(sub string) bool { return begins(c.words[i:], sub) }):
			return true
		case !strings.HasPrefix(c.words[i-1], "-"):
			return false
		}
	}
	return false
}

// begins reports whether words begin with those of a phrase.
func begins(words []string, phrase string) bool {
	first := strings.Fields(phrase)
	if len(words) < len(first) {
		return false
	}
	for i, want := range first {
		prefix, open := strings.CutSuffix(want, "*")
		if words[i] != want && !(open && strings.HasPrefix(words[i], prefix)) {
			return false
		}
	}
	return true
}

// away reports whether the command may go elsewhere than to its own machine.
func (k *Command) away(c command) bool {
	if slices.ContainsFunc(k.Away, c.has) {
		return true
	}
	here := false
	for i := 1; i < len(c.words); i++ {
		switch w := c.words[i]; {
		case k.takesNext(w):
			i++
		case strings.HasPrefix(w, "-") && !strings.Contains(w, "://"):
		case here && len(w) <= len("65535") && strings.Trim(w, "0123456789") == "":
		case loopback(w):
			here = true
		default:
			return true
		}
	}
	return !here
}

// takesNext reports whether an option's value is the next word.
func (k *Command) takesNext(w string) bool {
	if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") {
		for i := 1; i < len(w); i++ {
			if slices.Contains(k.SkipValue, "-"+w[i:i+1]) {
				return i == len(w)-1
			}
		}
	}
	return slices.Contains(k.SkipValue, w)
}

// loopback reports whether a host, or a URL's, is the machine itself.
func loopback(w string) bool {
	if !strings.Contains(w, "://") {
		w = "http://" + w
	}
	u, err := url.Parse(w)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.IsLoopback()
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
