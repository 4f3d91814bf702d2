package judge

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// variable is one thing that a rule can see; nil is that there is none.
type variable struct {
	of   *cel.Type
	read func(f *facts) any
}

// variables are all that a rule can see. Each field is one of its own ("action.kind"), so
// that a misspelt one does not compile, and none is computed before a rule reads it.
func variables() map[string]variable {
	text := func(read func(a *Ask) string) variable {
		return variable{cel.StringType, func(f *facts) any { return types.String(read(f.ask)) }}
	}
	number := func(read func(a *Ask) int) variable {
		return variable{cel.IntType, func(f *facts) any { return types.Int(read(f.ask)) }}
	}
	truth := func(read func(a *Ask) bool) variable {
		return variable{cel.BoolType, func(f *facts) any { return types.Bool(read(f.ask)) }}
	}
	words := cel.ListType(cel.StringType)
	return map[string]variable{
		"action.kind":          text(func(a *Ask) string { return a.Action.Kind }),
		"action.server":        text(func(a *Ask) string { return a.Action.Server }),
		"action.tool":          text(func(a *Ask) string { return a.Action.Tool }),
		"action.risk":          text(func(a *Ask) string { return string(claimed(a.Risk)) }),
		"action.intent":        text(func(a *Ask) string { return a.Intent }),
		"action.args":          {cel.MapType(cel.StringType, cel.DynType), func(f *facts) any { return f.arguments() }},
		"action.effects":       {words, func(f *facts) any { return f.effectList() }},
		"agent.name":           text(func(a *Ask) string { return a.Agent.Name }),
		"agent.role":           text(func(a *Ask) string { return a.Agent.Role }),
		"agent.profile":        text(func(a *Ask) string { return a.Agent.Profile }),
		"agent.project":        text(func(a *Ask) string { return a.Agent.Project }),
		"context.gate":         text(func(a *Ask) string { return string(a.Gate) }),
		"context.driver":       text(func(a *Ask) string { return a.Driver }),
		"context.attempt":      number(func(a *Ask) int { return a.Attempt }),
		"context.priority":     number(func(a *Ask) int { return a.Priority }),
		"context.contained":    truth(func(a *Ask) bool { return a.Contained.Holds }),
		"context.requested_by": text(func(a *Ask) string { return a.By.Name }),
		"context.actor_kind":   text(func(a *Ask) string { return string(a.By.Kind) }),
		"context.door":         text(func(a *Ask) string { return string(a.By.Door) }),
		"context.session":      text(func(a *Ask) string { return a.Session }),

		"result.has_confidence": truth(func(a *Ask) bool { return a.Confidence != nil }),
		"result.confidence": {cel.DoubleType, func(f *facts) any {
			if f.ask.Confidence == nil {
				return nil
			}
			return types.Double(*f.ask.Confidence)
		}},
		"result.text":     text(func(a *Ask) string { return a.Text }),
		"result.topics":   {words, func(f *facts) any { return f.topicList() }},
		"result.last_try": truth(func(a *Ask) bool { return a.LastTry }),
	}
}

// newEnv declares what a rule can see.
func newEnv(sees map[string]variable) (*cel.Env, error) {
	options := []cel.EnvOption{cel.CrossTypeNumericComparisons(true)}
	for name, v := range sees {
		options = append(options, cel.Variable(name, v.of))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("make the rule environment: %w", err)
	}
	return env, nil
}

// compile checks and plans one rule's expression; the constant true has no
// program.
func (r *rule) compile(env *cel.Env) error {
	tree, issues := env.Compile(r.When)
	if err := issues.Err(); err != nil {
		return err
	}
	if tree.OutputType() != cel.BoolType {
		return fmt.Errorf("want a bool, got %s", tree.OutputType())
	}
	if r.When == "true" {
		return nil
	}
	counted := func() (cel.Program, error) {
		return env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(celCost))
	}
	var err error
	if n, ok := comparisons(tree); ok {
		r.operators, r.counted = n+1, sync.OnceValues(counted)
		r.program, err = env.Program(tree, cel.EvalOptions(cel.OptOptimize))
	} else {
		r.program, err = counted()
	}
	return err
}

// facts is one ask as the rules see it.
type facts struct {
	t       *table
	ask     *Ask
	trace   *trace
	effects ref.Val
	topics  ref.Val
	args    ref.Val
}

func (f *facts) Parent() interpreter.Activation { return nil }

// ResolveName implements cel.Activation. What is absent (result.confidence of
// a result that claims none) is an error in the rule that reads it.
func (f *facts) ResolveName(name string) (any, bool) {
	v, ok := f.t.sees[name]
	if !ok {
		return nil, false
	}
	value := v.read(f)
	if f.trace != nil && value != nil {
		f.trace.read(name, value)
	}
	return value, value != nil
}

func (f *facts) effectList() ref.Val {
	if f.effects == nil {
		f.effects = wordList(f.t.does(&f.ask.Action))
	}
	return f.effects
}

func (f *facts) topicList() ref.Val {
	if f.topics == nil {
		f.topics = wordList(f.t.topics.In(f.ask.Text))
	}
	return f.topics
}

func wordList(words []string) ref.Val {
	return types.NewStringList(types.DefaultTypeAdapter, words)
}

func (f *facts) arguments() ref.Val {
	if f.args == nil {
		var args map[string]core.Raw
		if len(f.ask.Action.Args) > 0 {
			if err := json.Unmarshal(f.ask.Action.Args, &args); err != nil {
				f.args = types.NewErr("action.args: %v", err)
				return f.args
			}
		}
		f.args = types.NewMap(onReading{}, args)
	}
	return f.args
}

// onReading decodes an argument when a rule first reads it: most rules read
// none, and some read one often. It keeps them by where their JSON begins.
type onReading map[*byte]ref.Val

func (o onReading) NativeToValue(value any) ref.Val {
	raw, ok := value.(core.Raw)
	if !ok || len(raw) == 0 {
		return types.DefaultTypeAdapter.NativeToValue(value)
	}
	if v, ok := o[&raw[0]]; ok {
		return v
	}
	arg, err := core.Values(raw)
	if err == nil {
		arg, err = comparable64(arg)
	}
	if err != nil {
		o[&raw[0]] = types.NewErr("action.args: %v", err)
	} else {
		o[&raw[0]] = types.DefaultTypeAdapter.NativeToValue(arg)
	}
	return o[&raw[0]]
}

// comparable64 makes the integers of an argument that a float64 would round into those
// that a rule can compare exactly.
func comparable64(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k], err = comparable64(v[k]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = comparable64(v[i]); err != nil {
				return nil, err
			}
		}
	case core.Digits:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n, nil
		}
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no integer of 64 bits, which a rule can compare", core.Clip(string(v)))
		}
		return n, nil
	}
	return v, nil
}

// match evaluates one rule. An error is a fault of the rule.
func (r *rule) match(f *facts) (bool, error) {
	if r.program == nil {
		return true, nil
	}
	program := r.program
	if r.operators*f.size() > celCost {
		var err error
		if program, err = r.counted(); err != nil {
			return false, fmt.Errorf("rule %s: %w", r.ID, err)
		}
	}
	out, _, err := program.Eval(f)
	if err != nil {
		return false, fmt.Errorf("rule %s: %w", r.ID, err)
	}
	yes, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("rule %s: want a bool, got %s", r.ID, out.Type())
	}
	return bool(yes), nil
}

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
