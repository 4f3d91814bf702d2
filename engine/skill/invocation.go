package skill

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/mapping"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// KindInvoke is the kind of task that runs a skill.
const KindInvoke = judge.KindSkill

// invocation is the input of a skill.invoke task.
type invocation struct {
	Skill   string   `json:"skill"`              // name or name@version
	Params  core.Raw `json:"params,omitzero"`    // JSON object
	AgentID string   `json:"agent_id,omitempty"` // the subagent; without one the task makes its own
	// Plan is what will be done, as a question to a person shows it. It is
	// made anew whenever the task is looked at: what is given is not heeded.
	Plan core.Raw `json:"plan,omitzero"`
}

func readInvocation(input core.Raw) (invocation, error) {
	var in invocation
	if err := core.CheckObject("input", input, core.MaxInput); err != nil {
		return in, err
	}
	if err := core.Decode(input, &in); err != nil {
		return in, fmt.Errorf("input: %w", err)
	}
	if in.Skill == "" {
		return in, core.Invalid("skill", in.Skill, refAllowed)
	}
	if len(in.Params) == 0 {
		in.Params = core.Raw(`{}`)
	}
	return in, core.CheckObject("params", in.Params, core.MaxInput)
}

// invoker is the runner of skill.invoke tasks.
type invoker struct{ s *Skills }

var (
	_ swarm.Runner  = invoker{}
	_ task.Follower = invoker{}
)

// Runner carries out skill.invoke tasks for the swarm.
func (s *Skills) Runner() swarm.Runner { return invoker{s} }

// Check implements swarm.Runner: the skill and all it needs are there, and the
// parameters fit as far as that can be known before the first step has run.
func (i invoker) Check(tenant string, input core.Raw) (string, judge.Action, error) {
	in, err := readInvocation(input)
	if err != nil {
		return "", judge.Action{}, err
	}
	if in.AgentID != "" {
		if err := i.s.mayTake(tenant, in.AgentID); err != nil {
			return "", judge.Action{}, err
		}
	}
	x := i.s.indexFor(tenant, in.AgentID)
	goal, order, err := x.draft(in)
	if err != nil {
		return "", judge.Action{}, err
	}
	plan, effects := x.shownPlan(order, in)
	in.Plan = core.MustEncode(plan)
	return title(goal, in.Params), judge.Action{
		Kind: KindInvoke, Server: goal.Runner.Kind, Tool: goal.Name, Args: core.MustEncode(in), Effects: effects,
	}, nil
}

// mayTake reports a subagent that takes no skill. It looks at memory only.
func (s *Skills) mayTake(tenant, id string) error {
	if _, err := core.LocalUUID("agent_id", tenant, id); err != nil {
		return s.foreign(context.Background(), core.Self(tenant, "skills"), id, err)
	}
	if s.alive(tenant, id) == nil {
		return core.Errorf(core.NotFound, "agent_id: no subagent %s that is not over", id).With("field", "agent_id").With("value", id)
	}
	return nil
}

// foreign audits err when it says that something belongs to another tenant.
func (s *Skills) foreign(ctx context.Context, by core.Caller, named string, err error) error {
	return s.ledger.Foreign(ctx, by, "subagent", named, err)
}

// draft is the skill that an invocation names and the order in which what it
// needs is run, the parameters checked as far as they are known.
func (x *index) draft(in invocation) (goal *Skill, order []*Skill, err error) {
	if goal, err = x.resolve(in.Skill); err != nil {
		return nil, nil, err
	}
	if order, err = x.chain(goal); err != nil {
		return nil, nil, err
	}
	if err := allAccepted(order, in.Params); err != nil {
		return nil, nil, err
	}
	for i, s := range order {
		params, _ := feed(s, in.Params, nil)
		if i == 0 {
			_, err = s.CheckParams(params)
		} else {
			err = s.partialParams(params)
		}
		if err != nil {
			if s != goal {
				err = fmt.Errorf("%s, which runs before: %w", s.Name, err)
			}
			return nil, nil, err
		}
	}
	return goal, order, nil
}

// allAccepted reports a parameter that no step of a chain takes.
func allAccepted(order []*Skill, params core.Raw) error {
	var known []string
	for _, s := range order {
		names := mapping.Declared(s.ParametersSchema)
		if len(names) == 0 {
			return nil // it takes whatever there is
		}
		known = append(known, names...)
	}
	var given map[string]core.Raw
	if err := core.Decode(params, &given); err != nil {
		return mapping.InField("params", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			slices.Sort(known)
			field := "params." + core.ClipTo(name, 60)
			return core.Errorf(core.InvalidInput, "%s: no step of this run takes it; known are %s", field, strings.Join(mapping.SomeNames(slices.Compact(known)), ", ")).With("field", field)
		}
	}
	return nil
}

// feed puts the parameters of one step of a chain together: those given whose
// names its parameters_schema declares (all of them when it declares none),
// else the same-named members of earlier results, the nearest first. fed tells
// whether a result gave any.
func feed(s *Skill, given core.Raw, earlier []core.Raw) (params core.Raw, fed bool) {
	names := mapping.Declared(s.ParametersSchema)
	if len(names) == 0 {
		return given, false
	}
	found := map[string]core.Raw{}
	for _, name := range names {
		if v, _ := mapping.Member(given, name); v != nil {
			found[name] = v
			continue
		}
		for _, result := range earlier {
			if v, _ := mapping.Member(result, name); v != nil {
				found[name], fed = v, true
				break
			}
		}
	}
	return core.MustEncode(found), fed
}

// planned is one skill of a run as a question to a person shows it.
type planned struct {
	Skill   string   `json:"skill"` // name@version
	Digest  string   `json:"digest"`
	Effects []Effect `json:"effects"`
	Runner  Spec     `json:"runner"`
	Params  core.Raw `json:"params,omitzero"` // those known beforehand
}

// shownPlan lists what a run may run: the chain in its order, then what only
// steps of composites use; and the effects of it all.
func (x *index) shownPlan(order []*Skill, in invocation) (plan []planned, effects []string) {
	add := func(k *Skill, params core.Raw) {
		plan = append(plan, planned{k.Ref(), k.Digest, k.Effects, k.Runner, params})
		for _, e := range k.Effects {
			if !slices.Contains(effects, string(e)) {
				effects = append(effects, string(e))
			}
		}
	}
	for _, k := range order {
		params, _ := feed(k, in.Params, nil)
		add(k, params)
	}
	for _, k := range x.reachable(order[len(order)-1]) {
		if !slices.Contains(order, k) {
			add(k, nil)
		}
	}
	slices.Sort(effects)
	return plan, effects
}

// reachable lists a skill and all that its run may need, by name and version.
func (x *index) reachable(goal *Skill) []*Skill {
	all := []*Skill{goal}
	for i := 0; i < len(all); i++ {
		for _, e := range edges(all[i]) {
			if next := x.find(e.ref); next != nil && !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Skill) int { return strings.Compare(a.Ref(), b.Ref()) })
	return all
}

// title is one line for lists.
func title(s *Skill, params core.Raw) string {
	text := s.Ref()
	if string(params) != "{}" {
		text += " " + string(params)
	}
	return core.ClipTo(text, 120)
}

// Target is the subagent that an input names, "" when it names none.
func (invoker) Target(input core.Raw) string {
	var in invocation
	if core.DecodeStored(input, &in) != nil {
		return ""
	}
	return in.AgentID
}

// Renew is the input without its subagent, which runs one task only: another
// run has one of its own.
func (invoker) Renew(input core.Raw) core.Raw {
	in, err := readInvocation(input)
	if err != nil {
		return input // Check says what is wrong with it
	}
	in.AgentID, in.Plan = "", nil
	return core.MustEncode(in)
}

// AgentRef is what the judge's rules may know about a subagent.
func (i invoker) AgentRef(_, id string) judge.AgentRef {
	return judge.AgentRef{Name: id, Role: "subagent"}
}

// Slot implements swarm.Runner: each subagent has its own, and takes one task.
func (i invoker) Slot(tenant, id string) (bool, string) {
	if id != "" && i.s.alive(tenant, id) == nil {
		return false, "there is no such subagent, or it is over"
	}
	return true, ""
}
