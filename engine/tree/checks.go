package tree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/guarded"
	"swarmdeck/engine/record"
)

// Bounds of what tests a project.
const (
	maxChecks = 20
	maxLine   = 4096
)

// Checks are the commands that test the work of a project's agents: shell lines,
// each in a cell, in a copy of what would be taken over. With them is kept what the
// trees of the project begin with, and where its work may be pushed.
type Checks struct {
	Project   string            `json:"project"`
	TenantID  string            `json:"tenant_id"`
	Lines     []string          `json:"checks"`
	Env       map[string]string `json:"env,omitempty"`     // of the trees, see EnvOf
	Setup     []string          `json:"setup,omitempty"`   // shell lines that run once in a new tree
	Remotes   map[string]string `json:"remotes,omitempty"` // URLs by name, see ReadRemote
	Guarded   []string          `json:"guarded,omitempty"` // beside the list of package guarded
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	AuditSeq  uint64            `json:"audit_seq,omitzero"`
}

// ChecksOf are those of a project.
func (s *Trees) ChecksOf(tenant, project string) Checks {
	if c := s.checks.Get(tenant, project); c != nil {
		return *c
	}
	return Checks{Project: project, TenantID: tenant}
}

// CheckLines reports the first line that can't be a check.
func CheckLines(lines []string) error { return checkLines("check", lines) }

func checkLines(field string, lines []string) error {
	if len(lines) > maxChecks {
		return core.Invalid(field, len(lines), fmt.Sprintf("at most %d", maxChecks))
	}
	for _, line := range lines {
		if strings.TrimSpace(line) == "" || len(line) > maxLine || !utf8.ValidString(line) {
			return core.Invalid(field, core.Clip(line), fmt.Sprintf("a shell line of 1-%d bytes", maxLine))
		}
	}
	return nil
}

// SetChecks makes them those given; none removes them.
func (s *Trees) SetChecks(ctx context.Context, by core.Caller, project string, lines []string) (Checks, error) {
	out, _, err := s.PutChecks(ctx, by, project, lines)
	return out, err
}

// PutChecks is SetChecks, and says what changed: created, changed, unchanged.
func (s *Trees) PutChecks(ctx context.Context, by core.Caller, project string, lines []string) (out Checks, action string, err error) {
	if err := CheckLines(lines); err != nil {
		return out, "", err
	}
	return s.putProject(ctx, by, project, "project.checks", func(c *Checks) { c.Lines = lines })
}

// PutGuard has a project guard these paths beside the common ones; none is no more.
func (s *Trees) PutGuard(ctx context.Context, by core.Caller, project string, paths []string) (Checks, error) {
	if err := guarded.Check(paths); err != nil {
		return Checks{}, err
	}
	out, _, err := s.putProject(ctx, by, project, "project.guard", func(c *Checks) { c.Guarded = paths })
	return out, err
}

// GuardedOf are the paths that the project of an agent adds.
func (s *Trees) GuardedOf(tenant, agent string) []string {
	if agent == "" {
		return nil
	}
	return s.ChecksOf(tenant, s.opt.project(tenant, agent)).Guarded
}

// putProject changes what is kept of a project.
func (s *Trees) putProject(ctx context.Context, by core.Caller, project, event string, change func(*Checks)) (out Checks, action string, err error) {
	if err := s.lists.ByOperator(ctx, by, project); err != nil {
		return out, "", err
	}
	out = Checks{Project: project, TenantID: by.Tenant}
	err = s.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := s.lists.Load(tx, project)
		if err != nil {
			return err
		}
		if old != nil {
			out.Lines, out.Env, out.Setup, out.Remotes, out.Guarded = old.Lines, old.Env, old.Setup, old.Remotes, old.Guarded
		}
		change(&out)
		action, err = s.lists.Put(tx, record.Event{Type: event}, &out, nil)
		return err
	})
	return out, action, err
}

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
