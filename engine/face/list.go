package face

import (
	"fmt"
	"strconv"
	"strings"
)

// Listed is a column of a cockpit's list, see List of Of.
type Listed struct {
	Column            // Text is nil where only the list knows it
	Min, Weight, Need int
	Key, Middle       bool
}

// rest is the need of the first column that List does not lay out.
const rest = 20

// List are the columns of a cockpit's list.
func (f *Face) List() (all []Listed) {
	words := map[string]string{}
	for word := range strings.FieldsSeq(f.columns + " " + f.wide) {
		words[titleOf(word)] = word
	}
	for word := range strings.FieldsSeq(f.list) {
		title, layout, _ := strings.Cut(word, ":")
		l := f.laid(layout)
		if l.Title = strings.ReplaceAll(title, "_", " "); words[title] != "" {
			l.Column = f.column(words[title])
		}
		delete(words, title)
		all = append(all, l)
	}
	for i, word := range strings.Fields(f.columns) {
		if title := titleOf(word); words[title] != "" {
			all = append(all, Listed{Column: f.column(word), Min: max(4, len(title)), Need: rest + i})
		}
	}
	return all
}

func titleOf(word string) string {
	word, _, _ = strings.Cut(word, ",")
	title, _, _ := strings.Cut(word, ":")
	return title
}

// laid reads the layout of a column: 28*5/2kmr.
func (f *Face) laid(layout string) (l Listed) {
	digits := strings.TrimRight(layout, "kmr")
	l.Key, l.Middle = strings.Contains(layout[len(digits):], "k"), strings.Contains(layout[len(digits):], "m")
	l.Right = strings.Contains(layout[len(digits):], "r")
	digits, need, _ := strings.Cut(digits, "/")
	least, weight, _ := strings.Cut(digits, "*")
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil && text != "" {
			panic(fmt.Sprintf("face of %s: no column is laid out like %q", f.Type, layout))
		}
		return n
	}
	l.Min, l.Weight, l.Need = number(least), number(weight), number(need)
	return l
}
