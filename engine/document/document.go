// Package document reads the YAML and JSON files that people write: strictly,
// bounded, and with every mistake told at once by file, line, field, value and
// what is allowed. A file becomes a tree of Values; a Reader walks it and
// collects the problems. Nothing is applied here.
package document

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of a document. No honest file comes near them; a parser could spend
// its stack or minutes beyond.
const (
	maxDepth    = 64
	maxLine     = 16 << 10 // bytes of one line of YAML
	maxLines    = 10_000   // of YAML
	maxProblems = 50       // what one report says
)

// Reader walks the tree of one file and collects what is wrong with it.
type Reader struct {
	file     string
	problems []Problem
}

// NewReader names the file whose problems it will tell.
func NewReader(file string) *Reader { return &Reader{file: file} }

// Parse reads a document of at most max bytes: JSON when the file's name ends
// in .json, else YAML. It reports false, with a problem, when there is nothing
// to walk.
func (r *Reader) Parse(data []byte, max int) (root Value, ok bool) {
	if len(data) > max {
		r.At(1, "file", fmt.Sprintf("larger than %d bytes", max))
		return Value{}, false
	}
	line := 0
	for text := range bytes.Lines(data) {
		if line++; !utf8.Valid(text) {
			r.At(line, "file", "not valid UTF-8")
			return Value{}, false
		}
	}
	read := r.yaml
	if strings.EqualFold(filepath.Ext(r.file), ".json") {
		read = r.json
	}
	n := read(data)
	if n == nil {
		return Value{}, false
	}
	return Value{node: n, line: n.line}, true
}

// Kind is what stands at a place.
type Kind string

// The kinds, as messages name them.
const (
	Nothing Kind = "nothing"
	Text    Kind = "text"
	Bool    Kind = "true or false"
	Number  Kind = "a number"
	List    Kind = "a list"
	Mapping Kind = "a mapping"
	Anchor  Kind = "an anchor or alias, which is not allowed"
	Other   Kind = "something else"
)

// node is one place of the tree.
type node struct {
	kind  Kind
	line  int
	text  string // scalars: as it stands in the file, without quotes
	num   float64
	json  string // numbers: as JSON, "" when JSON has no such number
	pairs []member
	items []*node
}

type member struct {
	key   string
	plain bool // the key is a plain name
	line  int
	value *node
}

// Value is a place in a file: what stands there, the field's path and its line.
type Value struct {
	node *node
	path string
	line int
}

// Line is where the value stands, 1 or more.
func (v Value) Line() int {
	if v.node != nil && v.node.line > 0 {
		return v.node.line
	}
	return max(1, v.line)
}

// Path is the field's path in the file, "steps[1].skill"; "" for the whole.
func (v Value) Path() string { return v.path }

// Kind tells what stands there.
func (v Value) Kind() Kind {
	if v.node == nil {
		return Nothing
	}
	return v.node.kind
}

// Child is the place of a field that is not there.
func (v Value) Child(name string) Value {
	return Value{path: join(v.path, name), line: v.Line()}
}

// Field is the place of a mapping's field; Nothing when it is not there.
func (v Value) Field(name string) Value {
	if v.node != nil {
		for _, m := range v.node.pairs {
			if m.plain && m.key == name {
				return v.member(m)
			}
		}
	}
	return v.Child(name)
}

// Empty tells whether nothing was given: no value, "", an empty list or mapping.
func (v Value) Empty() bool {
	switch v.Kind() {
	case Nothing:
		return true
	case Text:
		return v.node.text == ""
	case List:
		return len(v.node.items) == 0
	case Mapping:
		return len(v.node.pairs) == 0
	}
	return false
}

func (v Value) member(m member) Value {
	name := Clip(m.key)
	if name == "" {
		name = `""`
	}
	return Value{node: m.value, path: join(v.path, name), line: m.line}
}

func (v Value) item(i int) Value {
	return Value{node: v.node.items[i], path: fmt.Sprintf("%s[%d]", v.path, i), line: v.Line()}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
