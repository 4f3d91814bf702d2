package judge

import (
	"cel.dev/cel-go/common/types/ref"

	"swarmdeck/engine/core"
)

// trace notes which rules were tried, and what the last one read. A nil trace
// notes nothing.
type trace struct {
	tried  []string
	rule   *rule
	values map[string]any
}

// look begins a rule.
func (t *trace) look(_ *facts, r *rule) {
	if t == nil {
		return
	}
	t.tried = append(t.tried, r.ID)
	t.rule, t.values = r, map[string]any{}
}

// read notes a value that the rule asked for.
func (t *trace) read(name string, value any) {
	v, ok := value.(ref.Val)
	if !ok {
		return
	}
	native := v.Value()
	if _, err := core.Encode(native); err != nil {
		return
	}
	t.values[name] = native
}
