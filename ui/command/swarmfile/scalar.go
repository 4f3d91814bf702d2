package swarmfile

import (
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text reads a scalar as the text that stands in the file.
func (r *reader) text(v value) string {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.node.GetToken().Value
	}
	r.fail(v, "want text, got %s", kindOf(v.node))
	return ""
}

// word is text that is not empty and of one line.
func (r *reader) word(v value) string {
	before := len(r.problems)
	s := r.text(v)
	if len(r.problems) == before && (strings.TrimSpace(s) == "" || strings.ContainsAny(s, "\n\r")) {
		r.fail(v, "%q is not allowed; want one line of text", clip(s))
	}
	return s
}

func (r *reader) command(v value, vars Vars) []string {
	words := each(r, v, r.text)
	for i := range words {
		words[i] = vars.expand(words[i])
	}
	if len(words) > 0 && (strings.HasPrefix(words[0], "./") || strings.HasPrefix(words[0], "../")) {
		words[0] = filepath.Join(vars.Dir, words[0])
	}
	return words
}

func (r *reader) texts(v value, vars Vars) map[string]string {
	if v.empty() {
		return nil
	}
	pairs, _ := r.pairs(v)
	all := make(map[string]string, len(pairs))
	for _, p := range pairs {
		all[p.key] = vars.expand(r.text(p.value))
	}
	return all
}

func (r *reader) boolean(v value) bool {
	if n, ok := v.node.(*ast.BoolNode); ok {
		return n.Value
	}
	r.fail(v, "want true or false, got %s", kindOf(v.node))
	return false
}

func (r *reader) integer(v value) int64 {
	n := r.number(v)
	if n != math.Trunc(n) || n > 1<<53 {
		r.fail(v, "want a whole number")
		return 0
	}
	return int64(n)
}

func (r *reader) number(v value) float64 {
	var n float64
	switch node := v.node.(type) {
	case *ast.IntegerNode:
		switch i := node.Value.(type) {
		case int64:
			n = float64(i)
		case uint64:
			n = float64(i)
		}
	case *ast.FloatNode:
		n = node.Value
	default:
		r.fail(v, "want a number, got %s", kindOf(v.node))
		return 0
	}
	if n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		r.fail(v, "want a number of 0 or more")
		return 0
	}
	return n
}

func (r *reader) duration(v value) time.Duration {
	s := r.text(v)
	d, err := time.ParseDuration(s)
	if s != "" && (err != nil || d < 0) {
		r.fail(v, "%q is not allowed; want a duration like 30s, 15m or 2h", clip(s))
		return 0
	}
	return d
}
