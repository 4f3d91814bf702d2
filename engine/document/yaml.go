package document

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"swarmdeck/engine/core"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

func (r *Reader) yaml(data []byte) (root *node) {
	defer func() { // the parser is not ours: its panics are mistakes of the file
		if p := recover(); p != nil {
			r.At(1, "file", "not valid YAML")
			root = nil
		}
	}()
	if line, why := tangled(data); why != "" {
		r.At(line, "file", why)
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
		r.At(line, "file", "not valid YAML: "+firstLine(text))
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
		r.At(1, "file", "empty; want a mapping")
		return nil
	case len(bodies) > 1:
		r.At(max(1, lineOf(bodies[1])), "file", "a second document; want one")
		return nil
	}
	return fromYAML(bodies[0])
}

// tangled finds what no honest file has and the recursive parser would spend
// its stack or minutes on: deep nesting, endless lines, and too many of them.
func tangled(data []byte) (line int, why string) {
	const nested = "nested too deeply"
	flow := 0
	for text := range strings.Lines(string(data)) {
		if line++; line > maxLines {
			return line, fmt.Sprintf("more than %d lines", maxLines)
		}
		if len(text) > maxLine {
			return line, fmt.Sprintf("the line is longer than %d bytes", maxLine)
		}
		rest := strings.TrimLeft(text, " ")
		steps := (len(text) - len(rest)) / 2
		for len(rest) > 1 && strings.IndexByte("-?:", rest[0]) >= 0 && rest[1] == ' ' { // "- - - a" opens three lists
			rest = strings.TrimLeft(rest[2:], " ")
			steps++
		}
		if steps > maxDepth {
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
		if flow > maxDepth {
			return line, nested
		}
	}
	return 0, ""
}

func fromYAML(n ast.Node) *node {
	out := &node{kind: Other, line: lineOf(n)}
	switch n := n.(type) {
	case nil, *ast.NullNode:
		out.kind = Nothing
	case *ast.StringNode:
		out.kind, out.text = Text, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = Text, n.Value.Value
	case *ast.BoolNode:
		out.kind, out.text = Bool, n.GetToken().Value
	case *ast.IntegerNode:
		out.kind, out.text = Number, n.GetToken().Value
		out.integer(n.Value)
	case *ast.FloatNode:
		out.kind, out.text = Number, n.GetToken().Value
		out.float(n.Value)
	case *ast.AnchorNode, *ast.AliasNode:
		out.kind = Anchor
	case *ast.SequenceNode:
		out.kind, out.items = List, core.Map(n.Values, fromYAML)
	case *ast.MappingNode:
		out.kind = Mapping
		for _, m := range n.Values {
			out.pairs = append(out.pairs, pairOf(m))
		}
	case *ast.MappingValueNode:
		out.kind, out.pairs = Mapping, []member{pairOf(n)}
	}
	return out
}

func pairOf(n *ast.MappingValueNode) member {
	m := member{line: lineOf(n.Key), value: fromYAML(n.Value)}
	key, plain := n.Key.(*ast.StringNode)
	if m.plain = plain; plain {
		m.key = key.Value
	} else {
		m.key = n.Key.String()
	}
	return m
}

func (n *node) integer(v any) {
	switch i := v.(type) {
	case int64:
		n.num, n.json = float64(i), strconv.FormatInt(i, 10)
	case uint64:
		n.num, n.json = float64(i), strconv.FormatUint(i, 10)
	}
}

func (n *node) float(f float64) {
	n.num = f
	switch {
	case jsontext.Value(n.text).IsValid():
		n.json = n.text // 1.0 stays as it is written
	case !math.IsInf(f, 0) && !math.IsNaN(f):
		n.json = strconv.FormatFloat(f, 'g', -1, 64)
	}
}

// lineOf is 0 for a node without a place of its own.
func lineOf(n ast.Node) int {
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			return max(0, t.Position.Line)
		}
	}
	return 0
}
