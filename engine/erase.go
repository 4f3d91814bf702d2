package engine

import (
	"context"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// erasers are what takes out what a person or agent said.
func (e *Engine) erasers() []record.Eraser {
	return slices.Concat(e.Tasks.Erasers(), e.Fleet.Erasers(), e.Skills.Erasers(), e.Bus.Erasers(), e.DAG.Erasers(), e.Judge.Erasers(),
		[]record.Eraser{{Kind: "operators", Erase: e.leaveOperator}})
}

// leaveOperator is a record.Erase that names the entry of an operator: it says
// who may enter, and is removed by who wants that to end.
func (e *Engine) leaveOperator(ctx context.Context, by core.Caller, of *record.Subject, _ []byte) ([]byte, int, error) {
	all, err := e.Operators.List(ctx, by.Tenant)
	for _, o := range all {
		if o.Name == of.Name {
			of.Leave("operator " + o.Name + " (who may enter, with the comments of their keys: operator remove " + o.Name + ")")
		}
	}
	return nil, 0, err
}
