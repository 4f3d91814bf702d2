package command

import (
	"strings"

	"swarmdeck/engine/core"
)

// Split cuts a line into words as a POSIX shell does for plain words: blanks
// separate, '…' is literal, "…" is literal but for \" and \\, and a backslash
// outside quotes takes the next character as it is. Nothing is expanded.
func Split(line string) ([]string, error) {
	words, _, err := scan(line)
	return words, err
}

// scan splits a line; open reports whether the last word was still being
// typed when the line ended (no blank after it).
func scan(line string) (words []string, open bool, err error) {
	var word strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		ch := line[i]
		switch {
		case quote == '\'' && ch != '\'':
			word.WriteByte(ch)
		case quote == '"' && ch == '\\' && i+1 < len(line) && (line[i+1] == '"' || line[i+1] == '\\'):
			i++
			word.WriteByte(line[i])
		case quote != 0 && ch == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(ch)
		case ch == '\'' || ch == '"':
			quote, open = ch, true
		case ch == '\\':
			if i+1 == len(line) {
				err = core.Errorf(core.InvalidInput, "line ends in a backslash").With("field", "line")
				break
			}
			i++
			word.WriteByte(line[i])
			open = true
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteByte(ch)
			open = true
		}
	}
	if quote != 0 {
		err = core.Errorf(core.InvalidInput, "line ends inside %c quotes", quote).With("field", "line")
	}
	if open {
		words = append(words, word.String())
	}
	return words, open, err
}
