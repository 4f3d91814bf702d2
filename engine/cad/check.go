package cad

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/cad/model"
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

// vars are the facts by the names that a check has for them. What was not
// measured is an error: a check that reads it fails and says so.
func (f *facts) vars() map[string]any {
	var pairs any = types.NewErr("no operation of the task measured interference (measure.interference)")
	if f.interferences != nil {
		pairs = *f.interferences
	}
	return map[string]any{
		"entities": f.entities, "solids": f.solids, "volume": f.volume, "conflicts": f.conflicts, "interferences": pairs,
		"files": f.files, "results": f.results,
	}
}

// Measure is one value that a check looked at.
type Measure struct {
	Name  string `json:"name"` // as the check writes it: results.mass.volume
	Value any    `json:"value"`
}

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
	vars := f.vars()
	v := verdict{measures: measure(env, vars, text)}
	out, _, err := program.Eval(vars)
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
		all := core.Map(v.measures, func(m Measure) string { return fmt.Sprintf("%s = %s", m.Name, core.MustEncode(m.Value)) })
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
func measure(env *cel.Env, vars map[string]any, text string) (all []Measure) {
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
		if out, _, err := program.Eval(vars); err == nil {
			if value, ok := plainMeasure(out); ok {
				all = append(all, Measure{name, value})
			}
		}
	}
	return all
}

func plainMeasure(v ref.Val) (any, bool) {
	switch v := v.(type) {
	case types.Int, types.Double, types.Bool:
		return v.Value(), true
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

func namesOf[T any, S ~string](list []T, name func(T) S) []string {
	return core.Map(list, func(v T) string { return string(name(v)) })
}

// oneOf reports a filter that names none of what there is; "" names all.
func oneOf[S ~string](field, value string, all []S) error {
	if value == "" || slices.Contains(all, S(value)) {
		return nil
	}
	return core.Invalid(field, value, strings.Join(namesOf(all, func(s S) S { return s }), ", "))
}

// listed are the first of some names, for a message.
func listed(names []string) string {
	const most = 60
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return strings.Join(names, ", ")
}

// judge decides whether an assignment whose operations went well is completed
// (model 5: it can't be unless its success criteria are met).
func (r *run) judge(out *outcome) error {
	f, err := r.facts(out)
	if err != nil {
		return err
	}
	v, err := f.evaluate(r.in.Check)
	if err != nil {
		return err
	}
	out.Measures = v.measures
	if v.holds {
		return nil
	}
	return &stepError{FailedResult: FailedResult{
		Code: CheckFailed, Message: v.why, Field: "check", Measures: v.measures, Done: r.count,
		Suggestion: r.in.SuccessCriteria,
	}}
}

// factsWait bounds how long the facts are read.
const factsWait = 10 * time.Second

// facts is what the assignment came to.
func (r *run) facts(out *outcome) (*facts, error) {
	ctx, cancel := context.WithTimeout(r.ctx, factsWait)
	defer cancel()
	all, err := r.c.AllEntities(ctx, r.by.Tenant, r.place)
	if err != nil {
		return nil, fmt.Errorf("read workspace %s: %w", r.place, err)
	}
	open, err := r.c.Conflicts(ctx, r.by.Tenant, r.place)
	if err != nil {
		return nil, fmt.Errorf("read the conflicts of workspace %s: %w", r.place, err)
	}
	f := &facts{conflicts: len(open), interferences: r.pairs, files: r.files, results: map[string]any{}}
	if f.files == nil {
		f.files = []string{}
	}
	for i := range all {
		f.add(&all[i])
	}
	for id, answer := range out.Operations {
		var v any
		if err := json.Unmarshal(answer, &v); err != nil {
			return nil, fmt.Errorf("read the answer of operation %s: %w", id, err)
		}
		f.results[id] = v
	}
	return f, nil
}

func (f *facts) add(e *model.Entity) {
	properties := map[string]any{}
	if len(e.Properties) > 0 && json.Unmarshal(e.Properties, &properties) != nil {
		properties = map[string]any{}
	}
	f.entities = append(f.entities, map[string]any{"entity_id": e.ID, "entity_type": string(e.Type), "properties": properties})
	if e.Type != model.Solid {
		return
	}
	solid := maps.Clone(properties)
	solid["entity_id"] = e.ID
	if volume, ok := properties["volume"].(float64); ok {
		f.volume += volume
	}
	f.solids = append(f.solids, solid)
}

// pairsIn is how many pairs overlap, as measure.interference answers; nil when
// it does not say.
func pairsIn(answer core.Raw) *int {
	var a struct {
		Count *int `json:"interference_count"`
	}
	if core.DecodeStored(answer, &a) != nil {
		return nil
	}
	return a.Count
}
