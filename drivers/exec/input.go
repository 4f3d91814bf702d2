package exec

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// Kind is the task kind that Runner serves.
const Kind = "exec.run"

// runInput is the input of an exec.run task.
type runInput struct {
	Argv  []string          `json:"argv"`
	Dir   string            `json:"dir,omitempty"` // absolute, or relative to the engine's directory
	Env   map[string]string `json:"env,omitempty"`
	Stdin string            `json:"stdin,omitempty"`
	// Profile is what it reaches: reader, worker (the default) or open.
	Profile cell.Profile `json:"profile,omitempty"`
	// Inspect has its requests decided by method and path.
	Inspect bool `json:"inspect,omitzero"`
}

// parseInput reads an input strictly and completes it: what it returns is
// exactly what would run.
func parseInput(data core.Raw, base string) (runInput, error) {
	var in runInput
	if err := core.CheckObject("input", data, core.MaxInput); err != nil {
		return in, err
	}
	if err := core.Decode(data, &in); err != nil {
		return in, err
	}
	if err := cell.CheckCommand("argv", in.Argv); err != nil {
		return in, err
	}
	if err := cell.CheckEnv(in.Env); err != nil {
		return in, err
	}
	dir, err := cell.CheckDir(in.Dir, base)
	if err != nil {
		return in, err
	}
	in.Dir = dir
	if _, err := cell.ParseProfile("profile", string(in.Profile)); err != nil {
		return in, err
	}
	return in, cell.CheckInspect("inspect", in.Profile, in.Inspect)
}

// maxTitle is the length of a task's line in a list, in characters.
const maxTitle = 120

// title is the command on one line, quoted where a shell would need it, with
// given variables in front: what they hold is not for every list.
func (in runInput) title() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		text := "…"
		if ref := secret.Reference(in.Env[name]); ref != "" {
			text = "@" + ref
		}
		words = append(words, name+"="+text)
	}
	for _, a := range in.Argv {
		words = append(words, quote(a))
	}
	line := []rune(strings.Join(words, " "))
	if len(line) > maxTitle {
		line = append(line[:maxTitle-1], '…')
	}
	for i, r := range line {
		if !unicode.IsPrint(r) {
			line[i] = '\uFFFD' // a title is one visible line, the arguments tell the rest
		}
	}
	return string(line)
}

func quote(word string) string {
	if len(word) > 4*maxTitle {
		word = word[:4*maxTitle] // the title is cut shorter anyway
	}
	if quoted, err := syntax.Quote(word, syntax.LangBash); err == nil {
		return quoted
	}
	return core.Quote(word) // it has what no shell takes
}
