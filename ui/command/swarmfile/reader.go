package swarmfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxProblems bounds what one report says.
const maxProblems = 50

// reader walks a YAML tree and collects what is wrong with it.
type reader struct {
	file     string
	problems []Problem
}

// value is a place in the file: a node and the field's path.
type value struct {
	node ast.Node
	path string
	at   int // line of the key, for nodes without a place of their own
}

func (v value) line() int {
	if v.node != nil {
		if t := v.node.GetToken(); t != nil && t.Position != nil && t.Position.Line > 0 {
			return t.Position.Line
		}
	}
	return max(1, v.at)
}

// child is the place of a field that is not there.
func (v value) child(name string) value {
	return value{path: join(v.path, name), at: v.line()}
}

func (v value) empty() bool {
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
		return true
	case *ast.MappingNode:
		return len(n.Values) == 0
	case *ast.SequenceNode:
		return len(n.Values) == 0
	case *ast.StringNode:
		return n.Value == ""
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// parse reads the document; nil when there is none to walk.
func (r *reader) parse(data []byte) (root *value) {
	if len(data) > MaxSize {
		r.at(1, "file", fmt.Sprintf("larger than %d bytes", MaxSize))
		return nil
	}
	defer func() { // the parser is not ours: its panics are mistakes of the file
		if p := recover(); p != nil {
			r.at(1, "file", "not valid YAML")
			root = nil
		}
	}()
	if line, why := tangled(data); why != "" {
		r.at(line, "file", why)
		return nil
	}
	doc, err := parser.ParseBytes(data, 0)
	if err != nil {
		line, text := 1, err.Error()
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			text = syntax.GetMessage()
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				line = t.Position.Line
			}
		}
		r.at(line, "file", "not valid YAML: "+firstLine(text))
		return nil
	}
	var bodies []ast.Node
	for _, d := range doc.Docs {
		if d != nil && d.Body != nil {
			bodies = append(bodies, d.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		r.at(1, "file", "empty; want a mapping with tenant, sessions, agents, budgets")
		return nil
	case len(bodies) > 1:
		r.at(value{node: bodies[1]}.line(), "file", "a second document; want one")
		return nil
	}
	return &value{node: bodies[0]}
}

// tangled finds what no swarm file has and the recursive parser would spend
// its stack or minutes on: deep nesting and endless lines.
func tangled(data []byte) (line int, why string) {
	const most, longest = 64, 16 << 10
	const nested = "nested too deeply"
	flow := 0
	for text := range strings.Lines(string(data)) {
		line++
		if len(text) > longest {
			return line, fmt.Sprintf("the line is longer than %d bytes", longest)
		}
		rest := strings.TrimLeft(text, " ")
		steps := (len(text) - len(rest)) / 2
		for len(rest) > 1 && strings.IndexByte("-?:", rest[0]) >= 0 && rest[1] == ' ' { // "- - - a" opens three lists
			rest = strings.TrimLeft(rest[2:], " ")
			steps++
		}
		if steps > most {
			return line, nested
		}
		for i := range len(rest) {
			switch rest[i] {
			case '[', '{':
				flow++
			case ']', '}':
				flow = max(0, flow-1)
			}
		}
		if flow > most {
			return line, nested
		}
	}
	return 0, ""
}

func (r *reader) at(line int, field, message string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, Problem{File: r.file, Line: line, Field: field, Message: message})
	}
}

func (r *reader) fail(v value, format string, args ...any) {
	field := v.path
	if field == "" {
		field = "file"
	}
	r.at(v.line(), field, fmt.Sprintf(format, args...))
}

// check reports err about v; the field is already named.
func (r *reader) check(v value, err error) {
	if err != nil {
		r.fail(v, "%s", err)
	}
}

// err is everything found so far, in the order of the file.
func (r *reader) err() error {
	return Err(r.problems)
}

// object reads a mapping; every key must be known and the needed ones there.
// It tells where each field stands.
func (r *reader) object(v value, fields map[string]func(value), needed ...string) Lines {
	pairs, ok := r.pairs(v)
	if !ok {
		return nil
	}
	allowed := make([]string, 0, len(fields))
	for name := range fields {
		allowed = append(allowed, name)
	}
	slices.Sort(allowed)
	given := Lines{}
	for _, p := range pairs {
		read, known := fields[p.key]
		if !known {
			r.fail(p.value, "unknown field; allowed: %s", strings.Join(allowed, ", "))
			continue
		}
		given[p.key] = p.at
		read(p.value)
	}
	for _, name := range needed {
		if given[name] == 0 {
			r.fail(v.child(name), "missing")
		}
	}
	return given
}

type pair struct {
	key string
	value
}

func (r *reader) pairs(v value) ([]pair, bool) {
	var nodes []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		nodes = n.Values
	case *ast.MappingValueNode:
		nodes = []*ast.MappingValueNode{n}
	default:
		r.fail(v, "want a mapping, got %s", kindOf(v.node))
		return nil, false
	}
	var all []pair
	for _, n := range nodes {
		key, ok := n.Key.(*ast.StringNode)
		if !ok {
			r.fail(value{node: n, path: v.path, at: v.line()}, "want plain names as keys, got %s", clip(n.Key.String()))
			continue
		}
		line := v.line()
		if t := key.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		all = append(all, pair{key.Value, value{node: n.Value, path: join(v.path, clip(key.Value)), at: line}})
	}
	return all, true
}

// each reads a list.
func each[T any](r *reader, v value, read func(value) T) []T {
	if v.empty() {
		return nil
	}
	list, ok := v.node.(*ast.SequenceNode)
	if !ok {
		r.fail(v, "want a list, got %s", kindOf(v.node))
		return nil
	}
	all := make([]T, 0, len(list.Values))
	for i, n := range list.Values {
		all = append(all, read(value{node: n, path: fmt.Sprintf("%s[%d]", v.path, i), at: v.line()}))
	}
	return all
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an anchor or alias, which swarm files don't have"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode:
		return "a number"
	}
	return "something else"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip(line)
}

func clip(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
