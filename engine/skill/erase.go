package skill

import (
	"bytes"
	"context"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// EraseExecutions is a record.Erase: the parameters, results and errors of runs
// of skills.
func (s *Skills) EraseExecutions(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return s.execs.Erase(ctx, by, of, from, "executions", func(tx *audit.Tx, _ *record.Erasure, x *Execution) (bool, error) {
		whose, over, err := of.Task(tx, x.TaskID)
		if err != nil || whose == record.NotTheirs && x.AgentID != of.Name {
			return false, err
		}
		if !over || x.Status == StatusPending {
			of.Leave("execution " + x.ExecutionID + " (it runs, or its task does)")
			return false, nil
		}
		some := erases(&x.Parameters)
		some = erases(&x.Result) || some
		return erasesText(&x.Error) || some, nil
	})
}

// EraseSubagents is a record.Erase: the parameters, metadata, results and errors
// of subagents.
func (s *Skills) EraseSubagents(ctx context.Context, by core.Caller, of *record.Subject, from []byte) (next []byte, n int, err error) {
	return s.agents.Erase(ctx, by, of, from, "subagents", func(tx *audit.Tx, e *record.Erasure, a *Subagent) (bool, error) {
		whose, over, err := of.Task(tx, a.TaskID)
		if err != nil || whose == record.NotTheirs && a.CreatedBy != of.Name && a.AgentID != of.Name {
			return false, err
		}
		some := erases(&a.SkillParams)
		some = erases(&a.Metadata) || some
		some = erasesText(&a.Error) || some
		under, results := resultsOf(tx.Tenant(), a.AgentID), map[string]core.Raw{}
		err = agentResults.Each(tx, under, func(skill record.Parts, result core.Raw) (bool, error) {
			if !core.IsErased(result) && len(result) > len(`{}`) {
				results[string(skill)], some = result, true
			}
			return true, nil
		})
		if err != nil || !some {
			return false, err
		}
		if !over || !a.State.Final() {
			of.Leave("subagent " + a.AgentID + " (" + string(a.State) + ")")
			return false, nil
		}
		if e == nil {
			return true, nil
		}
		for skill, was := range results {
			if err := agentResults.Put(tx, append(bytes.Clone(under), skill...), core.Erase(was)); err != nil {
				return true, err
			}
		}
		return true, nil
	})
}

// erases puts what stays in the place of a value, and says whether it was
// something.
func erases(v *core.Raw) bool {
	if len(*v) <= len(`{}`) || core.IsErased(*v) {
		return false
	}
	*v = core.Erase(*v)
	return true
}

func erasesText(s *string) bool {
	was := *s
	*s = core.EraseText(was)
	return *s != was
}
