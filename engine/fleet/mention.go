package fleet

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// MaxAttached is how many files one message may attach.
const MaxAttached = 20

// Bounds of what is taken for mentions.
const (
	maxMentions = 5 * MaxAttached
	maxMention  = 4096 // bytes, as of a path
)

// Mention is how a message attaches a file of the agent's directory: @src/main.go, or
// @"a b.txt" for a path with spaces.
func Mention(path string) string {
	if strings.ContainsFunc(path, unicode.IsSpace) {
		return `@"` + path + `"`
	}
	return "@" + path
}

// Mentions are the first paths that a text mentions, in order and each once: what follows an
// @ at the beginning of a word. Whether there are such files is not looked at.
func Mentions(text string) (paths []string) {
	before := ' '
	for i := 0; i < len(text) && len(paths) < maxMentions; {
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if r == '@' && (unicode.IsSpace(before) || strings.ContainsRune("([{<'\"`", before)) {
			path, size := mentioned(text[i:])
			i += size
			if path != "" && len(path) <= maxMention && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
			r = '@'
		}
		before = r
	}
	return paths
}

// mentioned is the path at the beginning of a text, and how much of it that is.
func mentioned(s string) (path string, size int) {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		end := strings.IndexAny(quoted, "\"\n")
		if end < 0 || quoted[end] != '"' {
			return "", 0
		}
		return quoted[:end], end + 2
	}
	end := strings.IndexFunc(s, unicode.IsSpace)
	if end < 0 {
		end = len(s)
	}
	return s[:end], end
}

// Attacher is a Runtime whose agents are handed files of their directory with a message
// that mentions them.
type Attacher interface {
	// Attaches says why an agent can't be handed a file, by its path from the directory.
	Attaches(a Agent, path string) error
}

// WithFiles adds files of an agent's directory to a message for it.
func (f *roster) WithFiles(tenant, name, text string, paths []string) (string, error) {
	if len(paths) == 0 {
		return text, nil
	}
	m := f.member(tenant, name)
	if m == nil {
		return "", core.Missing("agent", name)
	}
	a := *m.rec.Load()
	rt, ok := f.opt.Runtimes[a.Runtime].(Attacher)
	if !ok {
		return "", core.Invalid("attach", paths[0], "none: agents of runtime "+a.Runtime+" are handed no files; name the path in the text")
	}
	known := Mentions(text)
	var more []string
	for _, path := range paths {
		if path == "" || strings.ContainsAny(path, "\"\n") || !utf8.ValidString(path) {
			return "", core.Invalid("attach", path, "the path of a file of the agent's directory, without quotes and line breaks")
		}
		if err := rt.Attaches(a, path); err != nil {
			return "", err
		}
		if !slices.Contains(known, path) {
			known = append(known, path)
			more = append(more, Mention(path))
		}
	}
	if len(known) > MaxAttached {
		return "", core.Invalid("attach", known[MaxAttached], "at most 20 files with one message")
	}
	if len(more) > 0 {
		text += "\n\n" + strings.Join(more, " ")
	}
	return text, nil
}
