package pane

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/ui/filter"
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
// of any length: words, and col:value for the columns that core.Filter knows; a
// project is its agents. Signs that need every row read (! and ~) are refused.
func EngineFilter(text string, env Env) (core.Filter, error) {
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
		case "project":
			f.Agent = strings.Join(env.agentsOf(value), ",")
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
			if f.Since, err = since(env.Now, value); err != nil {
				return f, err
			}
		default:
			words = append(words, word)
		}
	}
	f.Match = strings.Join(words, " ")
	return f, nil
}

// agentsOf are the names of the agents of the projects whose names have a text in them.
// No agent is called what stands for none.
func (e *Env) agentsOf(project string) (names []string) {
	if e.Snap != nil {
		for _, a := range e.Snap.Agents {
			if _, _, in := filter.Index(a.Project, strings.ToLower(project)); in {
				names = append(names, a.Name)
			}
		}
	}
	if names == nil {
		names = []string{"-"}
	}
	return names
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
