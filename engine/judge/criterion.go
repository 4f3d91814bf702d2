package judge

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// maxCriterion bounds an expression, in bytes.
const maxCriterion = 2048

// Criterion is a CEL expression over "output", true for one that is a success.
type Criterion struct{ program cel.Program }

// NewCriterion compiles an expression. Errors name the field success.
func NewCriterion(expression string) (*Criterion, error) {
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
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(celCost))
	if err != nil {
		return nil, refuse(err)
	}
	return &Criterion{program}, nil
}

// Met says whether an output is a success. An error is why that can't be told: it is
// none then.
func (c *Criterion) Met(output core.Raw) (bool, error) {
	var v map[string]any
	if err := json.Unmarshal(output, &v); err != nil {
		return false, fmt.Errorf("output: %w", err)
	}
	got, _, err := c.program.Eval(map[string]any{"output": v})
	if err != nil {
		return false, err
	}
	return got == types.True, nil
}
