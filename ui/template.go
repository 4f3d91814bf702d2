package ui

import (
	"fmt"
	"slices"
	"strings"

	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
)

// template is a command line bound to a key. A word may hold placeholders:
// {id}, {agent}, … are filled from the thing under the cursor, {tenant} from
// the cockpit, and {?Label} asks the operator first.
type template struct{ words []string }

func parseTemplate(line string) (template, error) {
	words, err := command.Split(joined(line))
	if err != nil {
		return template{}, fmt.Errorf("key's command line %q: %w", line, err)
	}
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, joint, " ")
	}
	if len(words) == 0 {
		return template{}, fmt.Errorf("key's command line is empty")
	}
	return template{words}, nil
}

// joint stands for a space within the label of a question while a line is
// split into words.
const joint = "\x00"

// joined makes each question of a line a part of one word.
func joined(line string) string {
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(line, "{?")
		b.WriteString(head)
		label, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			if ok {
				b.WriteString("{?" + rest)
			}
			return b.String()
		}
		b.WriteString("{?" + strings.ReplaceAll(label, " ", joint) + "}")
		line = after
	}
}

// questions are the labels of {?Label}, in order, each once.
func (t template) questions() []string {
	var labels []string
	t.each(func(name string) {
		if label, ok := strings.CutPrefix(name, "?"); ok && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	})
	return labels
}

// acts reports whether the line acts on the thing under the cursor.
func (t template) acts() bool {
	found := false
	t.each(func(name string) {
		found = found || !strings.HasPrefix(name, "?") && name != "tenant"
	})
	return found
}

// lacks reports whether a thing has not all that the line takes of it.
func (t template) lacks(it *pane.Item) bool {
	lacks := false
	t.each(func(name string) {
		if !strings.HasPrefix(name, "?") && name != "tenant" {
			_, known := it.Field(name)
			lacks = lacks || !known
		}
	})
	return lacks
}

func (t template) each(fn func(name string)) {
	for _, w := range t.words {
		for {
			_, rest, ok := strings.Cut(w, "{")
			if !ok {
				break
			}
			name, after, ok := strings.Cut(rest, "}")
			if !ok {
				break
			}
			fn(name)
			w = after
		}
	}
}

// fill makes the words of the command for one thing. A value is always part
// of one word: whatever it holds, it can't become another word or flag value.
func (t template) fill(it pane.Item, tenant string, answers map[string]string) ([]string, error) {
	out := make([]string, 0, len(t.words))
	for _, w := range t.words {
		var b strings.Builder
		for {
			head, rest, ok := strings.Cut(w, "{")
			b.WriteString(head)
			if !ok {
				break
			}
			name, after, closed := strings.Cut(rest, "}")
			if !closed {
				b.WriteString("{" + rest)
				break
			}
			value, known := "", false
			switch {
			case name == "tenant":
				value, known = tenant, true
			case strings.HasPrefix(name, "?"):
				value, known = answers[name[1:]]
			default:
				value, known = it.Field(name)
			}
			if !known {
				if it.Empty() {
					return nil, fmt.Errorf("nothing is selected")
				}
				return nil, fmt.Errorf("%s has no %s", it, name)
			}
			b.WriteString(value)
			w = after
		}
		out = append(out, b.String())
	}
	return out, nil
}
