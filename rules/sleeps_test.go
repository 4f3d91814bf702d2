package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strings"
	"testing"
)

// A test waits for a state, never for time: that is slow on a quiet machine and too short on
// a busy one.
func TestNoTestWaitsForTime(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range sleeps(t, p) {
			t.Errorf("%s sleeps outside a bubble: wait for the state by the engine's bell, a channel or expect.Await", name)
		}
	}
}

// sleeps are where the tests of a package wait for time: they call time.Sleep, and not in
// a bubble, whose time only sleeping moves. In one is what is given to synctest.Test, or to
// a function of the package that hands what it is given to one, and a function whose
// comment says so ("in a bubble"). Benchmarks, with their *testing.B, measure over a time.
func sleeps(t *testing.T, p pkg) (at []string) {
	t.Helper()
	files := map[string]*ast.File{}
	each(t, p, slices.Concat(p.TestGoFiles, p.XTestGoFiles), parser.ParseComments|parser.SkipObjectResolution, func(name string, file *ast.File) { files[name] = file })
	bubbles := []string{"synctest.Test"}
	for known := 0; known < len(bubbles); {
		known = len(bubbles)
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && f.Recv == nil && f.Body != nil && !slices.Contains(bubbles, f.Name.Name) && takes(f.Type, "func") && calls(f.Body, bubbles) {
					bubbles = append(bubbles, f.Name.Name)
				}
			}
		}
	}
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				return !strings.Contains(strings.Join(strings.Fields(x.Doc.Text()), " "), "in a bubble") && !takes(x.Type, "testing.B")
			case *ast.FuncLit:
				return !takes(x.Type, "testing.B")
			case *ast.CallExpr:
				if called(x) == "time.Sleep" {
					at = append(at, name)
				}
				return !slices.Contains(bubbles, called(x))
			}
			return true
		})
	}
	slices.Sort(at)
	return at
}

// calls reports whether one of some functions is called in a body.
func calls(body ast.Node, some []string) (does bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		does = does || ok && slices.Contains(some, called(c))
		return !does
	})
	return does
}

// called is the name of a function that is called: "f" or "pkg.F".
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok {
			return of.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// takes reports whether a function has a parameter of a type: "func" is one that is
// called.
func takes(f *ast.FuncType, what string) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool {
		switch x := p.Type.(type) {
		case *ast.FuncType:
			return what == "func"
		case *ast.StarExpr:
			s, ok := x.X.(*ast.SelectorExpr)
			return ok && fmt.Sprint(s.X, ".", s.Sel) == what
		}
		return false
	})
}
