package ui

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"swarmdeck/ui/command"
	"swarmdeck/ui/pane"
)

// template is a command line bound to a key, by its words. A word may hold placeholders:
// {id}, {agent}, … are filled from the thing under the cursor, {tenant} from
// the cockpit, and {?Label} asks the operator first.
type template [][]templatePart

// templatePart is a text, or the name of a placeholder.
type templatePart struct{ text, name string }

func parseTemplate(line string) (t template, err error) {
	words, err := command.Split(joined(line))
	if err != nil {
		return nil, fmt.Errorf("key's command line %q: %w", line, err)
	}
	for _, w := range words {
		t = append(t, slices.Collect(templateParts(strings.ReplaceAll(w, joint, " "))))
	}
	if len(t) == 0 {
		return nil, fmt.Errorf("key's command line is empty")
	}
	return t, nil
}

// templateParts takes a text apart. A brace that nothing closes is text.
func templateParts(text string) iter.Seq[templatePart] {
	return func(yield func(templatePart) bool) {
		for {
			head, rest, ok := strings.Cut(text, "{")
			name, after, closed := strings.Cut(rest, "}")
			if !ok || !closed {
				yield(templatePart{text: text})
				return
			}
			if !yield(templatePart{text: head}) || !yield(templatePart{name: name}) {
				return
			}
			text = after
		}
	}
}

// joint stands for a space within the label of a question while a line is
// split into words.
const joint = "\x00"

// joined makes each question of a line a part of one word.
func joined(line string) string {
	var b strings.Builder
	for p := range templateParts(line) {
		b.WriteString(p.text)
		if p.name != "" {
			if strings.HasPrefix(p.name, "?") {
				p.name = strings.ReplaceAll(p.name, " ", joint)
			}
			b.WriteString("{" + p.name + "}")
		}
	}
	return b.String()
}

// names are those of the placeholders.
func (t template) names() (all []string) {
	for _, p := range slices.Concat(t...) {
		if p.name != "" {
			all = append(all, p.name)
		}
	}
	return all
}

// questions are the labels of {?Label}, in order, each once.
func (t template) questions() (labels []string) {
	for _, name := range t.names() {
		if label, ok := strings.CutPrefix(name, "?"); ok && !slices.Contains(labels, label) {
			labels = append(labels, label)
		}
	}
	return labels
}

// takes are the names of what the line takes of the thing under the cursor: it acts on that.
func (t template) takes() []string {
	return slices.DeleteFunc(t.names(), func(name string) bool { return strings.HasPrefix(name, "?") || name == "tenant" })
}

// lacks reports whether a thing has not all that the line takes of it.
func (t template) lacks(it *pane.Item) bool {
	return slices.ContainsFunc(t.takes(), func(name string) bool { _, known := it.Field(name); return !known })
}

// fill makes the words of the command for one thing. A value is always part
// of one word: whatever it holds, it can't become another word or flag value.
func (t template) fill(it pane.Item, tenant string, answers map[string]string) ([]string, error) {
	out := make([]string, len(t))
	for i, word := range t {
		for _, p := range word {
			value, known := p.text, true
			switch {
			case p.name == "":
			case p.name == "tenant":
				value = tenant
			case p.name[0] == '?':
				value, known = answers[p.name[1:]]
			default:
				value, known = it.Field(p.name)
			}
			switch {
			case !known && it.Empty():
				return nil, fmt.Errorf("nothing is selected")
			case !known:
				return nil, fmt.Errorf("%s has no %s", it, p.name)
			}
			out[i] += value
		}
	}
	return out, nil
}
