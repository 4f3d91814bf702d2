package ui

import (
	"slices"
	"strings"

	"swarmdeck/ui/command"
)

// asSentence asks a changing command for a sentence instead of a table, unless the
// operator has asked for a form.
func asSentence(line []string, effect command.Effect) []string {
	if effect == command.Reads {
		return line
	}
	end := slices.Index(line, "--") // what follows belongs to another command
	if end < 0 {
		end = len(line)
	}
	for _, w := range line[:end] {
		if w == "-o" || w == "--output" || strings.HasPrefix(w, "--output=") || strings.HasPrefix(w, "-o") && len(w) > 2 {
			return line
		}
	}
	return slices.Insert(slices.Clone(line), end, "-o", "sentence")
}
