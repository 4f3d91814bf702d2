// Package term is what the cockpit knows about terminals: which text may be
// printed, how many cells it takes, and what the terminal at hand can do.
//
// Everything an agent, a file or the network wrote goes through this package
// before it reaches a screen. It promises that what it returns holds no
// control character, no escape sequence, no bidirectional control and nothing
// invisible, and that terminals which count grapheme clusters and terminals
// which count code points (wcwidth) agree on its width, also after it was
// joined to other text from this package.
package term

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/colorprofile"
	xterm "golang.org/x/term"
)

// Flags are the command line's wishes; they win over the environment.
type Flags struct {
	Color      string // auto, always or never; empty means auto
	ASCII      bool
	Accessible bool
}

// Caps is what the terminal at hand can do, or should be asked to do.
type Caps struct {
	Plain      bool                 // no cells, no CSI: lines of text only
	Accessible bool                 // plain, and in words for a screen reader
	ASCII      bool                 // no character above U+007E of our own
	Color      colorprofile.Profile // NoTTY with Plain, ASCII means decoration but no colour
	SSH        bool                 // frames are slower and synchronised output isn't asked for by the toolkit
	Sync       bool                 // synchronised output has to be switched on by us
	Why        string               // why Plain, for the message; else empty
	Basic      bool                 // of ANSI's sequences it knows the old ones only: see NewBasic
	Links      bool                 // it opens hyperlinks (OSC 8) and prints nothing of them
	Term       string               // TERM and TERM_PROGRAM, as they were given
	Program    string
}

// Detect reads the environment through env (os.Getenv, or that of an SSH
// session) and judges what the screen gets. It runs no program and asks the
// terminal nothing.
//
// NO_COLOR counts with any value that isn't empty (no-color.org), which is
// why it is read here and not left to the toolkit. CLICOLOR_FORCE counts
// unless empty or "0" (bixense.com/clicolors), CLICOLOR=0 switches colour off.
func Detect(env func(string) string, stdinTTY, stdoutTTY bool, flags Flags) Caps {
	term := env("TERM")
	c := Caps{
		Accessible: flags.Accessible || on(env("ACCESSIBLE")),
		ASCII:      flags.ASCII || !utf8Locale(env) || on(env("RUNEWIDTH_EASTASIAN")), // then lines and signs would count as two cells
		SSH:        env("SSH_TTY") != "" || env("SSH_CONNECTION") != "",
		Term:       term,
		Program:    env("TERM_PROGRAM"),
		Basic:      basic(term),
	}
	switch {
	case c.Accessible:
		c.Plain, c.Why = true, "accessible mode"
	case mute(term):
		c.Plain, c.Why = true, "TERM is "+Clean(term)
	case !stdoutTTY:
		c.Plain, c.Why = true, "standard output is not a terminal"
	case !stdinTTY:
		c.Plain, c.Why = true, "standard input is not a terminal"
	case term == "":
		c.Plain, c.Why = true, "TERM is not set"
	}
	c.Color = profile(env, term, stdoutTTY, flags.Color)
	c.Links = !c.Plain && !c.Basic && links(env, term)
	c.Sync = !c.Plain && env("SSH_TTY") != "" && !asked(term)
	return c
}

// profile is how many colours to use.
func profile(env func(string) string, term string, tty bool, wish string) colorprofile.Profile {
	known := tty && term != "" && !mute(term)
	switch {
	case wish == "never":
	case wish == "always", on(env("CLICOLOR_FORCE")) && env("NO_COLOR") == "":
		return max(colors(env, term), colorprofile.ANSI)
	case !known:
		return colorprofile.NoTTY
	case env("NO_COLOR") == "" && env("CLICOLOR") != "0":
		return colors(env, term)
	}
	if !known {
		return colorprofile.NoTTY
	}
	return colorprofile.ASCII
}

// colors is what TERM and COLORTERM promise.
func colors(env func(string) string, term string) colorprofile.Profile {
	ct := strings.ToLower(env("COLORTERM"))
	multiplexer := strings.HasPrefix(term, "screen") // screen passes no true colour on
	switch {
	case (ct == "truecolor" || ct == "24bit") && !multiplexer, strings.HasSuffix(term, "-direct"):
		return colorprofile.TrueColor
	case strings.Contains(term, "256color"), ct != "" && multiplexer, asked(term):
		return colorprofile.ANSI256
	case term == "vt100", term == "vt52", term == "vt220", strings.HasSuffix(term, "-mono"), strings.HasSuffix(term, "-m"):
		return colorprofile.ASCII
	}
	return colorprofile.ANSI
}

// mute are the terminals that move no cursor by ANSI's sequences.
func mute(term string) bool {
	return slices.Contains([]string{"dumb", "unknown", "network", "dialup", "vt52"}, term)
}

// basic are the terminals that print what they do not know, or take it for
// something else. Any that is not listed is taken for one of today's.
func basic(term string) bool {
	family, _, _ := strings.Cut(term, "-")
	return slices.Contains([]string{"vt100", "vt102", "vt125", "vt220", "vt320", "vt420", "ansi", "pcansi", "linux", "cons25", "sun", "wsvt25"}, family)
}

// links tells whether the terminal is one of those known to open hyperlinks. What stands
// between, such as a multiplexer, is not.
func links(env func(string) string, term string) bool {
	family, _, _ := strings.Cut(term, "-")
	switch family {
	case "screen", "tmux":
		return false
	case "foot", "contour":
		return true
	}
	switch env("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "ghostty", "vscode", "Tabby", "Hyper", "rio":
		return true
	}
	vte, err := strconv.Atoi(env("VTE_VERSION"))
	return asked(term) || err == nil && vte >= 5000 || env("KONSOLE_VERSION") != "" || env("WT_SESSION") != ""
}

// asked tells whether the toolkit asks this terminal about synchronised output
// even when SSH_TTY is set.
func asked(term string) bool {
	return slices.ContainsFunc([]string{"ghostty", "wezterm", "alacritty", "kitty", "rio"}, func(name string) bool { return strings.Contains(term, name) })
}

// utf8Locale follows POSIX: the first of LC_ALL, LC_CTYPE and LANG that isn't
// empty decides, and none of them means the C locale.
func utf8Locale(env func(string) string) bool {
	v := strings.ToLower(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
}

// on reads a switch: empty, 0, false, no and off are off.
func on(v string) bool {
	return !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(v))
}

// IsTerminal reports whether what a command reads or writes is a terminal.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && xterm.IsTerminal(int(file.Fd()))
}

// Size is that of a terminal in cells.
type Size struct{ Width, Height int }

// Remote is a terminal at the other end of a connection: this process can't
// ask it for its size or its signals, it is told.
type Remote struct {
	Size
	// Resized gives each new size, the newest only when several wait.
	Resized <-chan Size
	// Suspend stops the program at the other end as ctrl+z stops a local one,
	// and returns when it goes on; nil when it can't.
	Suspend func()
	// Hold, called before, has what is typed wait until Suspend or Run returns; nil where
	// nobody reads ahead.
	Hold func()
	// Run gives the terminal to a program of whoever sits there, and returns when that
	// has ended; nil when it can't.
	Run func(argv []string) error
	// Full says that the other end is behind: what is written now would be old
	// when it is seen. Nil never is.
	Full func() bool
	// Drained gets a token when that may have changed.
	Drained <-chan struct{}
}
