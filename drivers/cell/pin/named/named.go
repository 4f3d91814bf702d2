// Package named finds which files of a work directory a command line names:
// its program, its scripts and configuration, its operands, and what
// well-known programs read by themselves.
//
// It errs on the side of too many. It does not read what a script reads or
// what a program computes; a word of a shell line that is computed where it
// says what runs is listed as not found out.
package named

import (
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of one command line.
const (
	MaxFiles = 64
	maxLooks = 8192     // paths that are looked at
	maxBases = 8        // directories that relative paths may start from
	maxDepth = 8        // command lines within command lines
	maxWord  = 4096     // bytes of a word that can be a path
	maxText  = 16 << 10 // bytes of shell text; deep nesting costs the parser's stack
	maxMake  = 1 << 20  // bytes of a makefile that is read for what it includes
)

// File is one file that is named.
type File struct {
	// Path is relative to the work directory, with slashes. Where Unbound is
	// set it may be a word of the command line.
	Path string
	// Runs says that the file says what happens: a program, a script, a
	// configuration. Others are worked on, and the command may write them.
	Runs bool
	// Unbound says why this can't be bound; "" otherwise.
	Unbound string
}

// Line is a command as it would run.
type Line struct {
	Argv []string
	// Program is the path that Argv[0] was found at, "" if that is not known.
	Program string
	// Dir is the work directory, absolute.
	Dir string
	// Env are the variables that it is given.
	Env map[string]string
}

// Find lists the files that a command line names, in the order they are met,
// each once. tree is the work directory; it must not follow links out of it.
func Find(tree fs.FS, line Line) []File {
	f := &finder{tree: tree, dir: filepath.ToSlash(line.Dir), bases: []string{"."}, vars: map[string]string{}}
	for k, v := range line.Env {
		f.vars[k] = v
	}
	f.vars["PWD"] = f.dir
	if len(line.Argv) == 0 {
		return nil
	}
	words := core.Map(line.Argv, func(w string) word { return word{text: w, known: true} })
	if line.Program != "" {
		f.look(line.Program, true)
	}
	f.command(words, 0)
	return f.found
}

// word is one word of a command. One that is not known is computed when it
// runs: text is how it is written, guess what it may come to, or "".
type word struct {
	text  string
	known bool
	guess string
}

type finder struct {
	tree  fs.FS
	dir   string
	bases []string // where relative paths may start from
	vars  map[string]string
	found []File
	looks int
}

// command adds what one command names.
func (f *finder) command(words []word, depth int) {
	if len(words) == 0 || depth > maxDepth {
		return
	}
	program := words[0]
	if !program.known {
		f.unknown(program)
	} else if strings.Contains(program.text, "/") {
		f.look(program.text, true)
	}
	t, _ := toolOf(program.text)
	f.operands(t, words)
	if t.shell {
		f.shellOption(words[1:], depth)
	}
	if t.wraps {
		f.wrapped(words[1:], depth)
	}
	switch program.text {
	case ".", "source":
		for _, w := range words[1:] {
			f.runs(w)
		}
	case "eval":
		text := make([]string, 0, len(words))
		for _, w := range words[1:] {
			text = append(text, w.text)
		}
		f.shell(strings.Join(text, " "), depth+1)
	}
	if len(t.reads) > 0 {
		f.implicit(t, words[1:])
	}
}

// operands looks at each argument, and at the parts of it that may be a path.
func (f *finder) operands(t tool, words []word) {
	mover := slices.Contains(movers(), path.Base(words[0].text))
	script := t.script // its script is still to come
	reader := false    // the word before is an option that names what is read
	for i, w := range words[1:] {
		option := strings.HasPrefix(w.text, "-") && w.text != "-"
		switch {
		case !w.known && script && !option:
			f.unknown(w)
			script = false
		case !w.known:
			f.look(w.guess, false)
		case option && t.script && !t.shell && code(w.text):
			script = false
			if w.text == "-m" && i+2 < len(words) {
				f.module(words[i+2].text)
			}
		}
		if !w.known {
			reader = false
			continue
		}
		here := len(f.found)
		hit := f.look(w.text, !mover && (reader || script && !option))
		if hit && script && !option {
			script = false
		}
		if !hit && len(f.found) == here {
			f.parts(w.text, !mover)
		}
		reader = option && slices.Contains(readers(), w.text)
	}
}

// code reports whether an option of an interpreter gives what it runs, so that
// no operand does.
func code(option string) bool {
	return slices.Contains([]string{"-c", "-m", "-p", "--eval", "--print"}, option) || !strings.HasPrefix(option, "--") && strings.HasSuffix(option, "e")
}

// module adds what python -m runs.
func (f *finder) module(name string) {
	name = strings.ReplaceAll(name, ".", "/")
	for _, p := range []string{name + ".py", name + "/__init__.py", name + "/__main__.py"} {
		f.look(p, true)
	}
}

// parts looks at what follows a mark in a word: --file=x, if:x, @x, -fx.
func (f *finder) parts(w string, reads bool) {
	if len(w) > maxWord {
		return
	}
	if len(w) > 2 && w[0] == '-' && w[1] != '-' {
		f.look(w[2:], reads && slices.Contains(readers(), w[:2]))
	}
	name, _, _ := strings.Cut(w, "=")
	for i := range len(w) {
		if strings.IndexByte("=:@,", w[i]) < 0 {
			continue
		}
		rest := w[i+1:]
		f.look(rest, reads && w[i] == '=' && slices.Contains(readers(), name))
		if end := strings.IndexAny(rest, "=:,"); end > 0 {
			f.look(rest[:end], false)
		}
	}
	if end := strings.IndexAny(w, ":,"); end > 0 {
		f.look(w[:end], false)
	}
}

// shellOption reads the text after a shell's -c.
func (f *finder) shellOption(words []word, depth int) {
	text := false
	for _, w := range words {
		switch {
		case !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+"):
			if !text {
				return
			}
			if !w.known {
				f.unknown(w)
				return
			}
			f.shell(w.text, depth+1)
			return
		case !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "c"):
			text = true
		}
	}
}

// wrapped finds the command line among the arguments of a program that runs
// one: it starts at a known program, or at a file.
func (f *finder) wrapped(words []word, depth int) {
	for i, w := range words {
		if !w.known {
			continue
		}
		if strings.ContainsAny(w.text, " \t\n;") { // watch 'sh x', su -c 'sh x'
			f.shell(w.text, depth+1)
			continue
		}
		if strings.HasPrefix(w.text, "-") || strings.Contains(w.text, "=") && !strings.Contains(w.text, "/") {
			continue
		}
		_, known := toolOf(w.text)
		if known || strings.Contains(w.text, "/") && f.look(w.text, true) || w.text == "." || w.text == "source" {
			f.command(words[i:], depth+1)
			return
		}
	}
}

// implicit adds what a tool reads by itself, here and in each directory that
// an argument names.
func (f *finder) implicit(t tool, words []word) {
	first := ""
	dirs := slices.Clone(f.bases)
	for _, w := range words {
		if first == "" && !strings.HasPrefix(w.text, "-") {
			first = w.text
		}
		_, value, cut := strings.Cut(w.text, "=")
		if !cut {
			value = w.text
		}
		for _, p := range f.places(strings.TrimSuffix(value, "/...")) {
			if info, err := fs.Stat(f.tree, p); err == nil && info.IsDir() && len(dirs) < 4*maxBases && !slices.Contains(dirs, p) {
				dirs = append(dirs, p)
			}
		}
	}
	runs := !slices.Contains(t.writes, first)
	for _, n := range slices.Clone(f.found) { // named, and read by itself too
		if n.Unbound == "" && slices.ContainsFunc(t.reads, func(p string) bool { ok, _ := path.Match(p, path.Base(n.Path)); return ok }) {
			f.at(n.Path, runs)
		}
	}
	for _, dir := range dirs {
		for _, pattern := range t.reads {
			for _, p := range f.glob(path.Join(dir, pattern)) {
				f.at(p, runs)
			}
		}
	}
	if slices.Contains(t.names, "make") {
		f.includes(dirs)
	}
}

// includes adds the files that the makefiles found so far include by name.
func (f *finder) includes(dirs []string) {
	include := regexp.MustCompile(`(?m)^ *[-s]?include[ \t]+([^#\n]+)`)
	for _, m := range slices.Clone(f.found) {
		if info, err := fs.Stat(f.tree, m.Path); m.Unbound != "" || !m.Runs || err != nil || info.Size() > maxMake {
			continue
		}
		text, err := fs.ReadFile(f.tree, m.Path)
		if err != nil {
			continue
		}
		for _, line := range include.FindAllSubmatch(text, MaxFiles) {
			for _, name := range strings.Fields(string(line[1])) {
				if strings.Contains(name, "$") {
					f.unknown(word{text: m.Path + ": include " + name})
					continue
				}
				for _, dir := range dirs {
					for _, p := range f.glob(path.Join(dir, name)) {
						f.at(p, true)
					}
				}
			}
		}
	}
}
