package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Bounds of what trees of a project have in their environment.
const (
	maxEnv      = 50
	maxEnvValue = 1024 // bytes
)

var envName = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// placeholders stand for what differs from tree to tree.
const placeholders = "{agent}, {n}, {project}, {branch}"

// CheckEnv reports the first variable that trees can't have.
func CheckEnv(env map[string]string) error {
	if len(env) > maxEnv {
		return core.Invalid("env", len(env), fmt.Sprintf("at most %d", maxEnv))
	}
	for name, value := range env {
		bare := expander("", "", "").Replace(value)
		switch upper := strings.ToUpper(name); {
		case !envName().MatchString(name):
			return core.Invalid("env", name, "a name of 1-64 of A-Z a-z 0-9 _, not with a digit first")
		case upper == "PATH" || upper == "HOME" || strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "GIT_") || strings.HasPrefix(upper, "SWARMDECK_"):
			return core.Invalid("env", name, "any but PATH, HOME, LD_…, GIT_… and SWARMDECK_…")
		case len(value) > maxEnvValue || !utf8.ValidString(value) || !core.Printable(value):
			return core.Invalid("env", name, fmt.Sprintf("a value of at most %d printable bytes", maxEnvValue))
		case strings.HasPrefix(value, "@"):
			return core.Invalid("env", name, "a value in clear: a secret is given to the agent itself, by --env")
		case strings.ContainsAny(bare, "{}"):
			return core.Invalid("env", name, "a value with no other braces than "+placeholders)
		}
	}
	return nil
}

// EnvOf is what the tree of an agent has in its environment. The number of an agent
// whose name ends with none is 1.
func (s *Trees) EnvOf(tenant, project string, t Tree) map[string]string {
	env := map[string]string{}
	with := expander(project, t.Agent, t.Branch)
	for name, value := range s.ChecksOf(tenant, project).Env {
		env[name] = with.Replace(value)
	}
	return env
}

func expander(project, agent, branch string) *strings.Replacer {
	n := agent[strings.LastIndexByte(agent, '-')+1:]
	if n == agent || n == "" || strings.Trim(n, "0123456789") != "" {
		n = "1"
	}
	return strings.NewReplacer("{agent}", agent, "{n}", n, "{project}", project, "{branch}", branch)
}

// PutTree sets what trees of a project have in their environment, and what runs in a
// new one first, and says what changed. Of each nil leaves it as it is, and an empty
// one removes it.
func (s *Trees) PutTree(ctx context.Context, by core.Caller, project string, env map[string]string, setup []string) (Checks, string, error) {
	if err := errors.Join(CheckEnv(env), CheckSetup(setup)); err != nil {
		return Checks{}, "", err
	}
	return s.putProject(ctx, by, project, "project.tree", func(c *Checks) {
		if env != nil {
			c.Env = maps.Clone(env)
		}
		if setup != nil {
			c.Setup = slices.Clone(setup)
		}
	})
}
