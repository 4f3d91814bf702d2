package fleet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// Bounds of a template.
const (
	maxRolePrompt = 10_000 // bytes
	maxTools      = 100
	maxMade       = 200 // roles of a project that agents are made from
)

// Template is what agents of a role are made with.
type Template struct {
	Prompt  string   `json:"prompt,omitempty"`  // stands before each of their tasks
	Profile string   `json:"profile,omitempty"` // reader or worker; "" is the runtime's default
	Tools   []string `json:"tools,omitempty"`   // that they may ask for, a last * for any rest; none is all
	Limits  *Limits  `json:"budget,omitempty"`
	Runtime string   `json:"runtime,omitempty"`
	Command []string `json:"command,omitempty"`
	Options core.Raw `json:"options,omitempty"`
}

// Limits are the budget that an agent of a role gets; zero is no limit.
type Limits struct {
	Tokens  int64   `json:"tokens,omitzero"`
	CostUSD float64 `json:"cost_usd,omitzero"`
	Tasks   int64   `json:"tasks,omitzero"`
	WallS   int64   `json:"wall_s,omitzero"`
}

// of is the budget of an agent with these limits.
func (l *Limits) of(agent string) budget.Budget {
	return budget.Budget{Subject: "agent:" + agent, Tokens: l.Tokens, CostUSD: l.CostUSD, Tasks: l.Tasks, WallS: l.WallS}
}

// CheckRole lists what PutRole would refuse, each error naming its field.
func (f *Fleet) CheckRole(project, role string, t Template) (bad []error) {
	c := Create{Name: "x", Project: project, Role: role}
	t.Fill(&c)
	if c.Runtime == "" && c.Command == nil {
		c.Command = []string{"true"} // each of its agents brings its own
		if t.Options != nil {
			bad = append(bad, core.Invalid("options", string(t.Options), "none without a runtime"))
		}
	}
	bad = append(bad, f.Check(c)...)
	if role == "" {
		bad = append(bad, core.Invalid("name", role, "the name of a role"))
	}
	if t.Profile == "open" {
		bad = append(bad, core.Invalid("profile", t.Profile, "reader, worker: an open agent is made by itself, with --yes"))
	}
	if len(t.Prompt) > maxRolePrompt || !utf8.ValidString(t.Prompt) {
		bad = append(bad, core.Invalid("prompt", fmt.Sprintf("%d bytes", len(t.Prompt)), fmt.Sprintf("UTF-8 text of at most %d bytes", maxRolePrompt)))
	}
	if len(t.Tools) > maxTools {
		bad = append(bad, core.Invalid("tools", len(t.Tools), fmt.Sprintf("at most %d", maxTools)))
	}
	for _, tool := range t.Tools {
		if tool == "" || len(tool) > maxCall || !core.Printable(tool) || strings.Contains(strings.TrimSuffix(tool, "*"), "*") {
			bad = append(bad, core.Invalid("tools", core.Clip(tool), fmt.Sprintf("names of 1-%d printable bytes, with * at the end alone", maxCall)))
		}
	}
	if t.Limits != nil {
		b := t.Limits.of("x")
		if err := b.Check(); err != nil {
			bad = append(bad, fmt.Errorf("budget: %w", err))
		}
	}
	return bad
}

// PutRole has agents of a role made with a template, and says what changed: created,
// changed, unchanged. What they were made with before stays with those that there are.
func (f *Fleet) PutRole(ctx context.Context, by core.Caller, project, role string, t Template) (r Role, action string, err error) {
	if err := f.roles.ByOperator(ctx, by, role); err != nil {
		return r, "", err
	}
	if bad := f.CheckRole(project, role, t); len(bad) > 0 {
		return r, "", bad[0]
	}
	t.Options, _ = checkOptions(t.Options)
	err = f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if err := f.addRole(tx, project, role); err != nil {
			return err
		}
		key := (&Role{Name: role, ProjectName: project}).key()
		old, err := f.roles.At(tx, key)
		if err != nil {
			return err
		}
		n := 0
		err = f.roles.Under(tx, record.Text(project), func(other *Role) error {
			if other.Template != nil {
				n++
			}
			return nil
		})
		if err != nil {
			return err
		}
		r, action = *old, record.Changed
		switch {
		case old.Template == nil && n >= maxMade:
			return core.Errorf(core.Conflict, "role: project %q has %d roles that agents are made from, the most there can be", project, n)
		case old.Template == nil:
			action = record.Created
		case old.Template.same(&t):
			action = record.Unchanged
			return nil
		}
		r.Template = &t
		return f.roles.Save(tx, record.Event{Type: "role.set"}, old, &r)
	})
	return r, action, err
}

func (t *Template) same(o *Template) bool {
	limits := t.Limits == o.Limits || t.Limits != nil && o.Limits != nil && *t.Limits == *o.Limits
	return limits && t.Prompt == o.Prompt && t.Profile == o.Profile && t.Runtime == o.Runtime &&
		slices.Equal(t.Tools, o.Tools) && slices.Equal(t.Command, o.Command) && bytes.Equal(t.Options, o.Options)
}

// RoleOf is a role that agents are made from. The error of another lists those that
// there are.
func (f *roster) RoleOf(ctx context.Context, tenant, project, role string) (Role, error) {
	all, err := f.Roles(ctx, tenant, project)
	if err != nil {
		return Role{}, err
	}
	var known []string
	for _, r := range all {
		if r.Template == nil {
			continue
		}
		if r.Name == role {
			return r, nil
		}
		known = append(known, r.Name)
	}
	allowed := core.ClipTo(strings.Join(known, ", "), 1000)
	if allowed == "" {
		allowed = "none yet: role set makes one, or projects in a swarm file"
	}
	return Role{}, core.Invalid("from", role, allowed)
}

// Fill gives a new agent what it does not say itself from the role's template. A
// runtime or a command of its own takes the place of all that the role says of both.
func (t *Template) Fill(c *Create) {
	if c.Runtime == "" && c.Command == nil {
		c.Runtime, c.Command = t.Runtime, t.Command
		if c.Options == nil {
			c.Options = t.Options
		}
	}
	if c.Profile == "" {
		c.Profile = t.Profile
	}
	c.Prompt, c.Tools, c.Limits = t.Prompt, t.Tools, t.Limits
}

// Attempts are the names of so many agents that try the same: NAME-1 and on.
func Attempts(name string, times int) (all []string) {
	for n := range times {
		all = append(all, fmt.Sprintf("%s-%d", name, n+1))
	}
	return all
}

// MaxTimes is how many agents can be made at once that try the same.
const MaxTimes = 20

// mayAsk reports whether an agent may ask for a tool at all.
func (a *Agent) mayAsk(tool string) bool {
	return len(a.Tools) == 0 || slices.ContainsFunc(a.Tools, func(t string) bool {
		rest, any := strings.CutSuffix(t, "*")
		return t == tool || any && strings.HasPrefix(tool, rest)
	})
}
