package script

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"swarmdeck/engine/core"
)

// builtin are testscript's own words.
var builtin = []string{
	"cd", "chmod", "cmp", "cmpenv", "cp", "env", "exec", "exists", "grep", "kill", "mkdir", "mv", "rm", "skip", "stderr",
	"stdin", "stdout", "stop", "symlink", "ttyin", "ttyout", "unix2dos", "unquote", "wait",
}

// check refuses a script with an unknown word before any of it has run.
func (r *run) check(text string) error {
	words := r.words()
	line := 0
	all := txtar.Parse([]byte(text))
	if r.outer.Remote {
		if err := r.remoteOnly(all); err != nil {
			return err
		}
	}
	for text := range strings.Lines(string(all.Comment)) {
		line++
		if strings.HasPrefix(text, "#") {
			continue
		}
		word := first(strings.Fields(text))
		if word == "[short]" || word == "[!short]" {
			return fmt.Errorf("%s:%d: %s: is known to tests only", r.name, line, word)
		}
		_, ours := words[word]
		if word == "" || ours || slices.Contains(builtin, word) || strings.ContainsAny(word, "$'#") {
			continue
		}
		return fmt.Errorf("%s:%d: unknown word %q", r.name, line, word)
	}
	return nil
}

// first is the word that a line is about, without conditions, ! and ?.
func first(fields []string) string {
	for _, f := range fields {
		switch {
		case f == "[short]" || f == "[!short]":
			return f
		case f == "!", f == "?", strings.HasPrefix(f, "["):
		default:
			return f
		}
	}
	return ""
}

// Bounds of a script from another machine. One of this machine has none: its
// author could take the memory in other ways.
const (
	mostPrinted = 8 << 20 // bytes that its commands print and it captures, all together
	mostFiles   = 100     // that it brings along
	mostWide    = 500     // cells of its cockpit's side
	mostLine    = 64 << 10
	mostLines   = 100_000
	mostDollars = 64       // variables on a line
	mostValue   = 4 << 10  // bytes of a captured value
	mostPattern = 64 << 10 // bytes of a regular expression, its variables and repetitions written out
	unbounded   = math.MaxInt
)

// harmless are testscript's words that touch no file and run no program. env
// is none of them: a variable made of itself twice, again and again, takes all
// the memory there is.
var harmless = []string{"cmp", "skip", "stderr", "stdout", "stop"}

// remoteOnly refuses, before any of it has run, a script from another machine that
// would touch this one: run a program, read or write a file other than those
// it brings along, or ask what there is here. These are found by "@NAME" or as
// the FILE of a command that reads one.
func (r *run) remoteOnly(a *txtar.Archive) error {
	if len(a.Files) > mostFiles {
		return fmt.Errorf("%s: it brings %d files along, the most there may be is %d", r.name, len(a.Files), mostFiles)
	}
	r.files = make(map[string][]byte, len(a.Files))
	for _, f := range a.Files {
		if !filepath.IsLocal(f.Name) || filepath.Clean(f.Name) != f.Name || strings.ContainsAny(f.Name, "$\\'\"") {
			return core.Invalid("file", f.Name, "a path below the script, without .. or $")
		}
		r.files[f.Name] = f.Data
	}
	words := r.words()
	line := 0
	for text := range strings.Lines(string(a.Comment)) {
		line++
		if line > mostLines {
			return fmt.Errorf("%s: a script from another machine has at most %d lines", r.name, mostLines)
		}
		if len(text) > mostLine || strings.Count(text, "$") > mostDollars {
			return fmt.Errorf("%s:%d: a line from another machine has at most %d bytes and %d variables", r.name, line, mostLine, mostDollars)
		}
		fields := strings.Fields(text)
		if len(fields) == 0 || strings.HasPrefix(text, "#") {
			continue
		}
		word := fields[0]
		for len(fields) > 1 && (word == "!" || word == "?") {
			fields = fields[1:]
			word = fields[0]
		}
		if err := r.fits(word, fields[1:], text, words); err != nil {
			return fmt.Errorf("%s:%d: %w", r.name, line, err)
		}
	}
	return nil
}

// fits holds one line. Its word must stand there as it is: one that is made
// of a variable or of quotes is known only when it runs.
func (r *run) fits(word string, args []string, text string, words map[string]word) error {
	_, ours := words[word]
	switch {
	case strings.HasPrefix(word, "#"):
		return nil
	case strings.HasPrefix(word, "["):
		return core.Errorf(core.Denied, "%s: conditions are about the machine of the data file and mean nothing from another", word)
	case slices.Contains(builtin, word) && !slices.Contains(harmless, word):
		return core.Errorf(core.Denied, "%s: from another machine a script runs no programs and touches no files; allowed beside the commands: %s", word, strings.Join(harmless, ", "))
	case !ours && !slices.Contains(harmless, word):
		return core.Errorf(core.InvalidInput, "unknown word %q", word)
	case slices.Contains(matching, word):
		if n := written(text); n > mostPattern {
			return fmt.Errorf("%s: from another machine a pattern has at most %d bytes with its repetitions written out and %d for each variable; this one may have %d", word, mostPattern, mostValue, n)
		}
		return nil
	case word != "cmp":
		return nil
	case strings.ContainsAny(text, "$'#"):
		return core.Errorf(core.Denied, "cmp: from another machine its files are named without $, quotes and comments")
	}
	for _, name := range args {
		if _, brought := r.files[name]; !brought && name != "stdout" && name != "stderr" {
			return core.Errorf(core.Denied, "cmp: %s is no file of the script", name)
		}
	}
	return nil
}

// matching are the words with a regular expression.
var matching = []string{"stdout", "stderr", "screen", "await"}

var (
	repetition = core.Pattern(`\{(\d+)(?:,(\d*))?\}`)
	reference  = core.Pattern(`\$[A-Za-z_{]`)
)

// written is how long the pattern of a line is at most when each repetition
// is written out, which is what a compiled one takes: all of them may be one
// in the other.
func written(text string) int {
	n := len(text) + mostValue*len(reference().FindAllString(text, -1))
	for _, m := range repetition().FindAllStringSubmatch(text, -1) {
		times, err := strconv.Atoi(cmp.Or(m[2], m[1]))
		if err != nil || n > mostPattern {
			return unbounded
		}
		n *= max(times, 1)
	}
	return n
}

// enough ends a script whose commands have printed and captured too much.
func (r *run) enough(ts teller) {
	if r.left <= 0 {
		ts.Fatalf("the script's commands printed more than %d bytes, what was captured included", mostPrinted)
	}
}

// print leaves what a word found on stdout.
func (r *run) print(ts teller, text []byte) {
	_, _ = (&bounded{r, ts.Stdout()}).Write(text)
	r.enough(ts)
}

// size reads the size of a cockpit.
func (r *run) size(text string) (w, h int, err error) {
	w, h, err = size(text)
	if err == nil && r.outer.Remote && max(w, h) > mostWide {
		err = core.Invalid("size", text, fmt.Sprintf("at most %[1]dx%[1]d from another machine", mostWide))
	}
	return w, h, err
}

// spend takes n bytes out of what the script may still print.
func (r *run) spend(n int) bool {
	if r.left < n {
		r.left = 0
		return false
	}
	if r.left != unbounded {
		r.left -= n
	}
	return true
}

// bounded takes what commands print out of what the script may still print.
type bounded struct {
	r   *run
	out io.Writer
}

func (b *bounded) Write(p []byte) (int, error) {
	if !b.r.spend(len(p)) {
		return 0, io.ErrShortWrite
	}
	return b.out.Write(p)
}
