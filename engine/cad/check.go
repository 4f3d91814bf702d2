package cad

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"swarmdeck/engine/core"
)

// checkCost bounds the evaluation of one check.
const checkCost = 1_000_000

// newCheckEnv declares what a check can see. Volumes are in mm³.
//
//	entities       list of {entity_id, entity_type, properties}, of the assignment's workspace
//	solids         list of {entity_id, volume, surface_area, bounding_box, topology, …}
//	volume         of all solids together
//	conflicts      how many conflicts of merges are open
//	interferences  how many pairs overlapped when they were last measured by the assignment
//	files          paths that the assignment exported, as given
//	results        the answer of each operation with an id
func newCheckEnv() (*cel.Env, error) {
	record := cel.MapType(cel.StringType, cel.DynType)
	env, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		cel.Variable("entities", cel.ListType(record)),
		cel.Variable("solids", cel.ListType(record)),
		cel.Variable("volume", cel.DoubleType),
		cel.Variable("conflicts", cel.IntType),
		cel.Variable("interferences", cel.IntType),
		cel.Variable("files", cel.ListType(cel.StringType)),
		cel.Variable("results", record),
	)
	if err != nil {
		return nil, fmt.Errorf("make the environment of checks: %w", err)
	}
	return env, nil
}

// compileCheck makes an expression ready; its type is what it gives.
func compileCheck(env *cel.Env, text string) (cel.Program, *cel.Type, error) {
	tree, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, nil, errors.New(firstText(err.Error()))
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(checkCost))
	return program, tree.OutputType(), err
}

// checkCheck reports a check that can't be evaluated.
func checkCheck(field, text string) error {
	if len(text) > maxCheck {
		return core.Invalid(field, fmt.Sprintf("%d bytes", len(text)), fmt.Sprintf("at most %d bytes", maxCheck))
	}
	env, err := newCheckEnv()
	if err != nil {
		return err
	}
	_, kind, err := compileCheck(env, text)
	if err == nil && kind != cel.BoolType && kind != cel.DynType {
		err = fmt.Errorf("want a bool, got %s", kind)
	}
	if err != nil {
		return core.Errorf(core.InvalidInput, "%s: %v", field, err).With("field", field).With("value", text)
	}
	return nil
}

// facts is what an assignment came to, as its check sees it.
type facts struct {
	entities      []map[string]any
	solids        []map[string]any
	volume        float64
	conflicts     int
	interferences *int // nil when it measured none
	files         []string
	results       map[string]any
}

// Parent implements cel.Activation.
func (f *facts) Parent() interpreter.Activation { return nil }

// ResolveName implements cel.Activation. What was not measured is absent: a
// check that reads it fails and says so.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "entities":
		return f.entities, true
	case "solids":
		return f.solids, true
	case "volume":
		return types.Double(f.volume), true
	case "conflicts":
		return types.Int(f.conflicts), true
	case "interferences":
		if f.interferences == nil {
			return types.NewErr("no operation of the task measured interference (measure.interference)"), true
		}
		return types.Int(*f.interferences), true
	case "files":
		return f.files, true
	case "results":
		return f.results, true
	}
	return nil, false
}

// Measure is one value that a check looked at.
type Measure struct {
	Name  string `json:"name"` // as the check writes it: results.mass.volume
	Value any    `json:"value"`
}

// verdict is what a check came to.
type verdict struct {
	holds    bool
	why      string // why it does not
	measures []Measure
}

// evaluate decides by a check; "" wants every solid closed.
func (f *facts) evaluate(text string) (verdict, error) {
	if text == "" {
		return f.closed(), nil
	}
	env, err := newCheckEnv()
	if err != nil {
		return verdict{}, err
	}
	program, _, err := compileCheck(env, text)
	if err != nil {
		return verdict{}, fmt.Errorf("compile the check: %w", err)
	}
	v := verdict{measures: f.measure(env, text)}
	out, _, err := program.Eval(f)
	if yes, ok := out.(types.Bool); err == nil && ok {
		v.holds = bool(yes)
	}
	if v.holds {
		return v, nil
	}
	v.why = "the check " + text + " does not hold"
	if err != nil {
		v.why = fmt.Sprintf("the check %s can't be decided: %v", text, err)
	} else if len(v.measures) > 0 {
		var all []string
		for _, m := range v.measures {
			all = append(all, fmt.Sprintf("%s = %s", m.Name, core.MustEncode(m.Value)))
		}
		v.why += ": " + strings.Join(all, ", ")
	}
	return v, nil
}

// closed is the verdict where no check says otherwise.
func (f *facts) closed() verdict {
	for _, s := range f.solids {
		topology, _ := s["topology"].(map[string]any)
		if ok, told := topology["is_closed"].(bool); told && !ok {
			return verdict{why: fmt.Sprintf("solid %v is not closed", s["entity_id"])}
		}
	}
	return verdict{holds: true}
}

// looks finds the values that a check reads: a name, and what leads into it.
var looks = core.Pattern(`\b(?:size\((?:entities|solids|files)\)|(?:entities|solids|volume|conflicts|interferences|results)(?:\.[A-Za-z_][A-Za-z0-9_]*\b|\[[0-9]+\]|\["[^"\]]*"\])*)`)

// maxMeasures bounds what a message says.
const maxMeasures = 10

// measure evaluates the plain values that a check reads.
func (f *facts) measure(env *cel.Env, text string) (all []Measure) {
	var seen []string
	for _, name := range looks().FindAllString(text, -1) {
		if slices.Contains(seen, name) || len(all) == maxMeasures {
			continue
		}
		seen = append(seen, name)
		program, _, err := compileCheck(env, name)
		if err != nil {
			continue
		}
		out, _, err := program.Eval(f)
		if err != nil {
			continue
		}
		if value, ok := plainMeasure(out); ok {
			all = append(all, Measure{name, value})
		}
	}
	return all
}

func plainMeasure(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.Int:
		return int64(v), true
	case types.Double:
		return float64(v), true
	case types.Bool:
		return bool(v), true
	case types.String:
		return string(v), len(v) <= 200
	}
	return nil, false
}

// firstText is the first line of an error, cut to a length that a message can
// hold.
func firstText(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(s, "ERROR: ")), "\n")
	return strings.TrimPrefix(line, "<input>:")
}

// listed are the first of some names, for a message.
func listed(names []string) string {
	const most = 60
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return strings.Join(names, ", ")
}
