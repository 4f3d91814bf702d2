package rules

import (
	"go/ast"
	"go/parser"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/engine/bound"
	"swarmdeck/expect"
)

// Patterns, and what a tag allows, are read at their first use, which may be late.
func TestEveryPatternCompiles(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		each(t, p, slices.Concat(p.GoFiles, p.IgnoredGoFiles), parser.SkipObjectResolution, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if f, is := n.(*ast.Field); is && f.Tag != nil {
					found += allows(t, name, f.Tag.Value)
				}
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 || !isPattern(from, call.Fun) {
					return true
				}
				found++
				text, ok := call.Args[0].(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: a pattern that is not written out", name)
					return true
				}
				expr, err := strconv.Unquote(text.Value)
				expect.No(t, err)
				_, err = regexp.Compile(expr)
				expect.True(t, err == nil, "%s: %v", name, err)
				return true
			})
		})
	}
	expect.True(t, found >= 10, "only %d patterns are found", found)
}

// allows counts a member's tag that bounds it, see engine/bound.
func allows(t *testing.T, name, tag string) int {
	text, is := reflect.StructTag(strings.Trim(tag, "`")).Lookup("allow")
	if !is {
		return 0
	}
	_, err := bound.Parse(text)
	expect.True(t, err == nil, "%s: %v", name, err)
	return 1
}

// isPattern says whether core.Pattern is called, from within core too.
func isPattern(from string, fun ast.Expr) bool {
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		in, ok := sel.X.(*ast.Ident)
		return ok && in.Name == "core" && sel.Sel.Name == "Pattern"
	}
	name, ok := fun.(*ast.Ident)
	return ok && from == "engine/core" && name.Name == "Pattern"
}
