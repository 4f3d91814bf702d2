package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/secret"
)

// envOf is the environment of an agent as its record has it.
func (e *Engine) envOf(tenant, agent string) map[string]string {
	for _, a := range e.Fleet.Live(tenant) {
		if a.Name == agent {
			return a.Env
		}
	}
	return nil
}

// shownInput is the input of a task as it may be seen.
func shownInput(kind string, input core.Raw) core.Raw {
	if kind != judge.KindExec {
		return input
	}
	return secret.ShownInput(input)
}

// inputOf is the input of a task as it is recorded: credentials that are given
// in clear in the environment of a command become references to secrets.
func (e *Engine) inputOf(ctx context.Context, by core.Caller, kind string, input core.Raw) (core.Raw, error) {
	if kind != judge.KindExec {
		return input, nil
	}
	input, err := e.placed(ctx, by, input)
	if err != nil {
		return nil, err
	}
	var in struct {
		Argv []string `json:"argv"`
	}
	if core.DecodeStored(input, &in) == nil { // else its runner says what is wrong
		if err := secret.CheckWords("argv", in.Argv); err != nil {
			return nil, err
		}
	}
	env := secret.EnvOf(input)
	if len(env) == 0 {
		return input, nil
	}
	if err := e.Secrets.Check(ctx, by, env); err != nil {
		return nil, err
	}
	kept, taken, err := e.Secrets.Take(ctx, by, secret.OfTasks, env)
	if err != nil || len(taken) == 0 {
		return input, err
	}
	return secret.WithEnv(input, kept), nil
}

// skillEnv reports an environment that a skill can't have: a file that
// everybody may read is no place for a credential.
func (e *Engine) skillEnv(tenant string, env map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if secret.LooksSecret(key, env[key]) {
			field := "runner.env." + key
			return core.Errorf(core.InvalidInput, "%s: looks like a credential in clear; set a secret and write @NAME", field).With("field", field)
		}
	}
	if err := e.Secrets.Check(context.Background(), core.Self(tenant, "skills"), env); err != nil {
		c := core.AsError(err)
		return core.Errorf(c.Code, "runner.%s", c.Message).With("field", "runner."+fmt.Sprint(c.Details["field"]))
	}
	return nil
}

// SecretUses lists the agents whose environment refers to a secret, by its
// name, in order.
func (e *Engine) SecretUses(tenant string) map[string][]string {
	uses := map[string][]string{}
	for _, a := range e.Fleet.Live(tenant) {
		for _, name := range secret.References(a.Env) {
			uses[name] = append(uses[name], a.Name)
		}
	}
	for _, agents := range uses {
		slices.Sort(agents)
	}
	return uses
}
