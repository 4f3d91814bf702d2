package swarm

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
	"swarmdeck/engine/schema"
	"swarmdeck/engine/task"
)

// maxExpected bounds the schema of a result, in bytes: it is read with its task.
const maxExpected = 16 << 10

// checkExpect refuses what no output could be held to.
func checkExpect(e *task.Expect) error {
	if e == nil {
		return nil
	}
	if len(e.Schema) > 0 {
		if err := core.CheckObject("result_schema", e.Schema, maxExpected); err != nil {
			return err
		}
		if wrong := schema.Check(e.Schema); len(wrong) > 0 {
			return core.Errorf(core.InvalidInput, "result_schema: %s: %s", strings.Join(wrong[0].Path, "/"), wrong[0].Message).With("field", "result_schema")
		}
	}
	if e.Success != "" {
		_, err := criterion(e.Success)
		return err
	}
	return nil
}

// unmet says why a success is not the one that was asked for, "" for nothing.
func unmet(e *task.Expect, out *task.Outcome) string {
	if e == nil || out.Status != task.Succeeded {
		return ""
	}
	if len(e.Schema) > 0 {
		check, err := schema.New(e.Schema, nil)
		if err == nil {
			_, err = check.Check("output", out.Output, false)
		}
		if err != nil {
			return err.Error()
		}
	}
	if e.Success != "" {
		c, err := criterion(e.Success)
		met := false
		if err == nil {
			met, err = meets(c, out.Output)
		}
		switch {
		case err != nil:
			return fmt.Sprintf("success: %s: %v", e.Success, err)
		case !met:
			return "success: " + e.Success + " is not true of the output"
		}
	}
	return ""
}

// Bounds of a criterion: bytes of its expression, and what it may cost.
const (
	maxCriterion = 2048
	maxCost      = 100_000
)

// criterion compiles a CEL expression over "output", true for one that is a success.
// Errors name the field success.
func criterion(expression string) (cel.Program, error) {
	refuse := func(err error) error {
		return core.Errorf(core.InvalidInput, "success: %v; want a CEL expression over output that is true or false, such as output.rc == 0", err).With("field", "success")
	}
	if len(expression) > maxCriterion {
		return nil, core.Invalid("success", core.Clip(expression), fmt.Sprintf("at most %d bytes", maxCriterion))
	}
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.Variable("output", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, fmt.Errorf("make the environment of criteria: %w", err)
	}
	tree, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, refuse(err)
	}
	if tree.OutputType() != cel.BoolType && tree.OutputType() != cel.DynType {
		return nil, refuse(fmt.Errorf("it is a %s", tree.OutputType()))
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, refuse(err)
	}
	return program, nil
}

// meets says whether an output is a success. An error is why that can't be told.
func meets(c cel.Program, output core.Raw) (bool, error) {
	var v map[string]any
	if err := json.Unmarshal(output, &v); err != nil {
		return false, fmt.Errorf("output: %w", err)
	}
	got, _, err := c.Eval(map[string]any{"output": v})
	return err == nil && got == types.True, err
}
