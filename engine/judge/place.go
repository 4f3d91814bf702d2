package judge

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"swarmdeck/engine/core"
)

// Where a mistake of a proposal stands: details of its error.
const (
	detailIn   = "in"   // inSource or inTests
	detailLine = "line" // from 1

	inSource = "source"
	inTests  = "tests"
)

// yamlPlace is how the YAML parser says where something stands.
var yamlPlace = core.Pattern(`^policy: \[(\d+):\d+\] `)

// placed says which line of a table an error is about, as far as that is known.
func placed(source []byte, err error) error {
	if err == nil {
		return nil
	}
	e := core.AsError(err).With(detailIn, inSource)
	if at := yamlPlace().FindStringSubmatch(e.Message); at != nil {
		e.Message = "policy: line " + at[1] + ": " + strings.TrimPrefix(e.Message, at[0])
		line, _ := strconv.Atoi(at[1])
		return e.With(detailLine, line)
	}
	field, _ := e.Details["field"].(string)
	if line := lineOf(source, field); line > 0 {
		e.Message += " (line " + strconv.Itoa(line) + ")"
		return e.With(detailLine, line)
	}
	return e
}

// lineOf finds a field such as rules.NAME.when, rules[2].id or schema in a
// table; 0 when it is not there.
func lineOf(source []byte, field string) (line int) {
	defer func() {
		if recover() != nil { // as in parseTable
			line = 0
		}
	}()
	tree, err := parser.ParseBytes(source, 0)
	if err != nil || len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return 0
	}
	top, rest, _ := strings.Cut(field, ".")
	top, index, _ := strings.Cut(top, "[")
	at := child(tree.Docs[0].Body, top)
	if at == nil {
		return 0
	}
	line = at.GetToken().Position.Line
	rules, ok := at.(*ast.SequenceNode)
	if !ok || top != "rules" || rest == "" {
		return line
	}
	id, name := cutLast(rest)
	n, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	for i, r := range rules.Values {
		if index == "" && text(child(r, "id")) == id || index != "" && err == nil && i == n {
			line = r.GetToken().Position.Line
			if m, ok := r.(*ast.MappingNode); ok && len(m.Values) > 0 {
				line = m.Values[0].Key.GetToken().Position.Line
			}
			if f := child(r, name); f != nil {
				line = f.GetToken().Position.Line
			}
			break
		}
	}
	return line
}

// cutLast parts a rule's id, which may have dots, from the field after it.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '.')
	return s[:max(i, 0)], s[i+1:]
}

// child is the value of a mapping's member; nil without one.
func child(n ast.Node, name string) ast.Node {
	var members []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		members = n.Values
	case *ast.MappingValueNode:
		members = []*ast.MappingValueNode{n}
	}
	for _, m := range members {
		if m.Key.GetToken().Value == name {
			return m.Value
		}
	}
	return nil
}

func text(n ast.Node) string {
	if n == nil {
		return ""
	}
	return n.GetToken().Value
}
