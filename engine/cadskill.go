package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// cadSkills is the runner of skills of kind cad: one operation of a CAD agent.
// The parameters are agent_id and those of the method; the result is what the
// operation answers. It happens once, however often the step is tried. Who had
// the skill run must be one who may act as that agent; of a fleet agent it is its
// own unless it is named.
type cadSkills struct {
	tasks *task.Table
	cad   *cad.Controller // filled in before anything runs
}

var (
	_ skill.Runner    = (*cadSkills)(nil)
	_ skill.Effecter  = (*cadSkills)(nil)
	_ skill.Forgetter = (*cadSkills)(nil)
)

func (*cadSkills) Check(spec skill.Spec) error {
	if _, ok := cad.FindMethod(spec.Method); !ok {
		return core.Invalid("runner.method", spec.Method, strings.Join(cad.MethodNames(), ", "))
	}
	return nil
}

// Effects implements skill.Effecter: what deals with files writes. What stays in
// workspaces has no effect outside; it is judged as the operation that it is.
func (*cadSkills) Effects(spec skill.Spec) []skill.Effect {
	m, _ := cad.FindMethod(spec.Method)
	switch m.Effect {
	case cad.Imports, cad.Exports, cad.Deletes:
		return []skill.Effect{skill.Write}
	}
	return []skill.Effect{skill.Read}
}

func (s *cadSkills) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	return skill.RunFunc(ctx, call, func(ctx context.Context, call skill.Call, hold *skill.Hold) (core.Raw, error) {
		var params map[string]core.Raw
		if err := json.Unmarshal(call.Params, &params); err != nil {
			return nil, core.Errorf(core.InvalidInput, "params: %v", err).With("field", "params")
		}
		var agent string
		if given := params["agent_id"]; given != nil && (json.Unmarshal(given, &agent) != nil || agent == "") {
			return nil, core.Invalid("agent_id", string(given), "the CAD agent that carries it out")
		}
		t, err := s.tasks.Get(ctx, call.Tenant, call.TaskID)
		if err != nil {
			return nil, err
		}
		delete(params, "agent_id")
		m, _ := cad.FindMethod(call.Skill.Runner.Method)
		op := cad.Operation{
			AgentID: agent, Method: m.Name, Params: core.MustEncode(params), TaskID: call.TaskID, TraceID: call.TraceID, Session: call.Session,
			Stop: ctx.Done(), For: core.Caller{Tenant: call.Tenant, Name: t.CreatedBy, Kind: t.CreatedKind, Person: t.CreatedPerson, Door: core.DoorEngine},
		}
		if m.Effect != cad.Reads {
			op.Mark = marksOf(call.TaskID) + call.Step
		}
		if err := hold.Wait(ctx); err != nil {
			return nil, err
		}
		by := core.Caller{Tenant: call.Tenant, Name: call.AgentID, Kind: core.Agent, Door: core.DoorEngine}
		done, err := s.cad.Execute(ctx, by, op)
		var failed *cad.OpError
		if errors.As(err, &failed) {
			return nil, &skill.Failure{Code: strings.ToLower(string(failed.Class)), Message: failed.Error(), Retryable: failed.Retryable}
		}
		return done.Data, err
	}), nil
}

// Forget implements skill.Forgetter: nothing of a task that is over is tried
// again.
func (s *cadSkills) Forget(tx *audit.Tx, task string) error {
	return s.cad.ForgetMarks(tx, marksOf(task))
}

// marksOf is what the marks of a task's operations begin with.
func marksOf(task string) string { return "skill/" + task + "/" }
