package files

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"swarmdeck/engine/core"
)

// Effect is what a rule does with a path.
type Effect string

// The effects.
const (
	Read  Effect = "read"
	Write Effect = "write" // and read
	Hide  Effect = "hide"
)

// Rule says of a file or directory, with all that is in it, what processes of a
// tenant may do with it.
type Rule struct {
	TenantID string `json:"tenant_id"`
	Path     string `json:"path"` // absolute
	// Role and Agent say for whom the rule is; at most one. Without either it
	// is for every agent, task and server.
	Role      string    `json:"role,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Effect    Effect    `json:"effect"`
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// NewRule reads a path, which may begin with ~ for the home of the engine's
// user.
func NewRule(effect Effect, path string) (r Rule, err error) {
	r.Effect = effect
	r.Path, err = fullPath("path", path)
	return r, err
}

// Check reports the first bad field.
func (r *Rule) Check() error {
	if r.Effect != Read && r.Effect != Write && r.Effect != Hide {
		return core.Invalid("effect", string(r.Effect), "read, write, hide")
	}
	full, err := fullPath("path", r.Path)
	switch {
	case err != nil:
		return err
	case full != r.Path || !utf8.ValidString(full):
		return core.Invalid("path", r.Path, "a clean absolute path of valid UTF-8")
	}
	return core.CheckWhom(r.Role, r.Agent, "")
}

// Whom says for whom the rule is: "", "role NAME" or "agent NAME".
func (r *Rule) Whom() string { return core.Whom(r.Role, r.Agent, "") }

// ID tells the rule from the tenant's others. Names are quoted: they may hold
// what looks like a path.
func (r *Rule) ID() string {
	switch {
	case r.Role != "":
		return fmt.Sprintf("role %q %s", r.Role, r.Path)
	case r.Agent != "":
		return fmt.Sprintf("agent %q %s", r.Agent, r.Path)
	}
	return r.Path
}

// concerns reports whether the rule is about an agent of a role; "" is none.
func (r *Rule) concerns(role, agent string) bool {
	return (r.Role == "" || r.Role == role) && (r.Agent == "" || r.Agent == agent)
}

// state is what the audit log says of a rule.

func compareRules(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Whom(), b.Whom()))
}
