package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
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
