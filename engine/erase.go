package engine

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/retention"
)

// erasers are what takes out what a person or agent said.
func (e *Engine) erasers() []retention.Eraser {
	return []retention.Eraser{
		{Kind: "tasks", Erase: e.Tasks.EraseTasks},
		{Kind: "logs", Erase: e.Tasks.EraseLogs},
		{Kind: "agents", Erase: e.Fleet.EraseAgents},
		{Kind: "activity", Erase: e.Fleet.EraseActivity},
		{Kind: "queue", Erase: e.Fleet.EraseQueue},
		{Kind: "attention", Erase: e.Fleet.EraseAttention},
		{Kind: "executions", Erase: e.Skills.EraseExecutions},
		{Kind: "subagents", Erase: e.Skills.EraseSubagents},
		{Kind: "messages", Erase: e.Bus.EraseMessages},
		{Kind: "refusals", Erase: e.Bus.EraseRefusals},
		{Kind: "events", Erase: e.DAG.EraseEvents},
		{Kind: "rules", Erase: e.Judge.EraseRules},
		{Kind: "approvals", Erase: e.Judge.EraseApprovals},
		{Kind: "decisions", Erase: e.Judge.EraseDecisions},
		{Kind: "operators", Erase: e.leaveOperator},
	}
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
