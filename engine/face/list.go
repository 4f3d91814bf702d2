package face

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Listed is a column of a cockpit's list, see List of Of.
type Listed struct {
	Column            // Text is nil where only the list knows it
	Min, Weight, Need int
	Key, Middle, ID   bool
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
		if title, hidden := strings.CutPrefix(word, "-"); hidden {
			delete(words, title)
			continue
		}
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
			l := Listed{Column: f.column(word), Need: rest + i}
			if l.Min = max(4, len(title)); !l.Right && !l.Time {
				l.Min, l.Weight = max(l.Min, min(cmp.Or(l.Most, 12), 16)), 1+l.Most/20
			}
			l.Key = len(all) == 0 // of a list without a layout
			all = append(all, l)
		}
	}
	return all
}

func titleOf(word string) string {
	word, _, _ = strings.Cut(word, ",")
	title, _, _ := strings.Cut(word, ":")
	return title
}

// laid reads the layout of a column: 28*5/2kmri.
func (f *Face) laid(layout string) (l Listed) {
	digits := strings.TrimRight(layout, "kmri")
	for _, flag := range layout[len(digits):] {
		*map[rune]*bool{'k': &l.Key, 'm': &l.Middle, 'r': &l.Right, 'i': &l.ID}[flag] = true
	}
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
