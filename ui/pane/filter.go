package pane

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// since is the time that since:TEXT means.
func since(now time.Time, text string) (time.Time, error) {
	at, err := core.ParsePast(now, text)
	if err != nil {
		return at, fmt.Errorf("filter since:%s: %w", text, err)
	}
	return at, nil
}

// EngineFilter turns a filter line into one that the engine applies to a list
// of any length: words, and col:value for the columns that core.Filter knows.
// Signs that need every row read (! and ~) are refused.
func EngineFilter(text string, now time.Time) (core.Filter, error) {
	var f core.Filter
	var words []string
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "!") || strings.HasPrefix(word, "~") {
			return f, fmt.Errorf("filter %s: this list is filtered by the engine, with words and col:value only", word)
		}
		col, value, ok := strings.Cut(word, ":")
		if !ok {
			words = append(words, word)
			continue
		}
		switch strings.ToLower(col) {
		case "status", "state", "decision":
			f.Status = strings.ToLower(value)
		case "agent":
			f.Agent = value
		case "kind", "type":
			f.Kind = value
		case "session":
			f.Session = value
		case "trace":
			f.Trace = strings.ToLower(value)
		case "task":
			f.Task = value
		case "since":
			var err error
			if f.Since, err = since(now, value); err != nil {
				return f, err
			}
		default:
			words = append(words, word)
		}
	}
	f.Match = strings.Join(words, " ")
	return f, nil
}

// FilterWord takes the words col:value out of what a filter line matches and
// returns their values: lists narrow by columns of their own so.
func FilterWord(f *core.Filter, col string) (values []string) {
	var rest []string
	for word := range strings.FieldsSeq(f.Match) {
		name, value, ok := strings.Cut(word, ":")
		if ok && strings.EqualFold(name, col) && value != "" {
			values = append(values, value)
		} else {
			rest = append(rest, word)
		}
	}
	f.Match = strings.Join(rest, " ")
	return values
}
