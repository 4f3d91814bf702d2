package judge

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Counting what an evaluation costs takes as long again as the usual rule. An
// expression that only compares looks at each part of an ask once at most for
// each of its operators: where that can't come to celCost, nothing is counted.

// comparing are the operators of such an expression.
var comparing = []string{
	operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.Equals, operators.NotEquals,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In, operators.Index,
	"size",
}

// comparisons is the number of operators in an expression that only compares;
// false when it does anything else.
func comparisons(tree *cel.Ast) (n int, ok bool) {
	ok = true
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			n++
			ok = ok && slices.Contains(comparing, e.AsCall().FunctionName())
		case ast.IdentKind, ast.SelectKind, ast.LiteralKind, ast.ListKind:
		default:
			ok = false
		}
	}))
	return n, ok
}

// size bounds the bytes of all that a rule sees of the ask.
func (f *facts) size() int {
	const rest = 4 << 10 // names, and the effects and topics that there are
	n := rest + len(f.ask.Action.Args) + len(f.ask.Text) + len(f.ask.Intent)
	for _, e := range f.ask.Action.Effects {
		n += len(e)
	}
	return n
}
