package rules

import (
	"go/ast"
	"go/parser"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"swarmdeck/expect"
)

// Patterns are compiled at their first use, which may be late.
func TestEveryPatternCompiles(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		from, _ := part(p.ImportPath)
		each(t, p, slices.Concat(p.GoFiles, p.IgnoredGoFiles), parser.SkipObjectResolution, func(name string, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
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

// isPattern says whether core.Pattern is called, from within core too.
func isPattern(from string, fun ast.Expr) bool {
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		in, ok := sel.X.(*ast.Ident)
		return ok && in.Name == "core" && sel.Sel.Name == "Pattern"
	}
	name, ok := fun.(*ast.Ident)
	return ok && from == "engine/core" && name.Name == "Pattern"
}
