package egress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Effect is what a rule does.
type Effect string

// The effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// Bounds of a tenant's rules.
const (
	maxRules  = 1000
	minExpiry = time.Second
	maxExpiry = 366 * 24 * time.Hour

	maxMethods  = 16
	maxRulePath = 512 // bytes
)

// Rule lets connections to a host through, or refuses them.
type Rule struct {
	TenantID string `json:"tenant_id"`
	// Host is a name, an address, *.DOMAIN for all names below a domain and not
	// the domain itself, or the name of a preset.
	Host  string   `json:"host"`
	Port  uint16   `json:"port,omitzero"`   // 0 is every port
	Hosts []string `json:"hosts,omitempty"` // what a preset stood for when the rule was made
	// Role, Agent and Project say for whom the rule is; at most one. Without any it
	// is for everybody.
	Role    string `json:"role,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Project string `json:"project,omitempty"`
	Effect  Effect `json:"effect"`
	// Methods and Path say which requests it is about, where cells are looked
	// into; without them it is about all that can be said to the host. Methods are
	// those of a Request, sorted; Path is one, or with * at its end all that begin
	// so.
	Methods []string `json:"methods,omitempty"`
	Path    string   `json:"path,omitempty"`
	// Opaque keeps the host's connections from being looked into.
	Opaque bool `json:"opaque,omitzero"`
	// Private lets the host's addresses be loopback, private or otherwise
	// closed. A rule that names an address or localhost has it by itself.
	Private   bool      `json:"private,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero is never
	Owner     string    `json:"owner"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	AuditSeq  uint64    `json:"audit_seq,omitzero"`
}

// NewRule reads HOST[:PORT].
func NewRule(effect Effect, where string) (Rule, error) {
	t, err := parsePattern(where)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Effect: effect, Host: t.Host, Port: t.Port}
	r.expand()
	r.Private = effect == Allow && (t.Addr().IsValid() || t.Host == localhost)
	return r, nil
}

const localhost = "localhost"

// ReadOnly are the methods that ask for something and, as HTTP has it, change
// nothing, and git's way to fetch.
func ReadOnly() []string { return []string{"GET", "HEAD", "OPTIONS", UploadPack} }

// Narrow makes it a rule about some requests: of these methods, empty for all,
// and with this path, "" for every one.
func (r *Rule) Narrow(methods []string, path string) error {
	r.Methods = nil
	for _, m := range methods {
		if !isMethod(m) && m != UploadPack && m != ReceivePack {
			return core.Invalid("method", m, "methods of HTTP in capitals, "+UploadPack+", "+ReceivePack)
		}
		r.Methods = append(r.Methods, m)
	}
	if len(r.Methods) > maxMethods {
		return core.Invalid("method", len(r.Methods), "at most 16 methods")
	}
	slices.Sort(r.Methods)
	r.Methods = slices.Compact(r.Methods)
	if r.Path = ""; path == "" {
		return nil
	}
	start, all := strings.CutSuffix(path, "*")
	clean, loose := cleanPath(start)
	if loose || strings.Contains(clean, "*") || len(clean) > maxRulePath {
		return core.Invalid("path", path, "a path that begins with /, without . and .. in it, at most 512 bytes; * at its end is all that begin so")
	}
	if r.Path = clean; all {
		r.Path += "*"
	}
	return nil
}

// scoped reports a rule that is about some requests only.
func (r *Rule) scoped() bool { return len(r.Methods) > 0 || r.Path != "" }

// Check reports the first bad field.
func (r *Rule) Check() error {
	if r.Effect != Allow && r.Effect != Deny {
		return core.Invalid("effect", string(r.Effect), "allow, deny")
	}
	again, err := NewRule(r.Effect, r.Where())
	switch {
	case err != nil:
		return err
	case again.Host != r.Host:
		return core.Invalid("host", r.Host, hostWords)
	case r.Private && r.Effect == Deny:
		return core.Invalid("private", true, "only in a rule that allows")
	case r.Private && (strings.HasPrefix(r.Host, "*.") || len(r.Hosts) > 0):
		return core.Invalid("private", true, "only in a rule that names one host")
	}
	narrow := Rule{}
	switch err := narrow.Narrow(r.Methods, r.Path); {
	case err != nil:
		return err
	case !slices.Equal(narrow.Methods, r.Methods):
		return core.Invalid("method", strings.Join(r.Methods, ","), "each once, sorted")
	case narrow.Path != r.Path:
		return core.Invalid("path", r.Path, narrow.Path)
	case r.Opaque && (r.Effect == Deny || r.scoped()):
		return core.Invalid("inspect", false, "only in a rule that allows all requests")
	}
	return core.CheckWhom(r.Role, r.Agent, r.Project)
}

// Where is HOST or HOST:PORT.
func (r *Rule) Where() string { return Target{r.Host, r.Port}.String() }

// Whom says for whom the rule is: "", "role NAME", "agent NAME" or "project NAME".
func (r *Rule) Whom() string { return core.Whom(r.Role, r.Agent, r.Project) }

// What is the requests that it is about: "", or METHOD,METHOD PATH.
func (r *Rule) What() string {
	return strings.TrimSpace(strings.Join(r.Methods, ",") + " " + r.Path)
}

// ID tells the rule from the tenant's others.
func (r *Rule) ID() string {
	return strings.Join(slices.DeleteFunc([]string{r.Where(), r.What(), r.Whom()}, func(s string) bool { return s == "" }), " ")
}

// Alive reports whether the rule has not expired.
func (r *Rule) Alive(now time.Time) bool { return r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt) }

// State is what the rule does now: allow, deny, or expired.
func (r *Rule) State(now time.Time) string {
	if !r.Alive(now) {
		return "expired"
	}
	return string(r.Effect)
}

// concerns reports whether a rule about the host is about this connection too.
func (r *Rule) concerns(from *Origin, port uint16, now time.Time) bool {
	return (r.Port == 0 || r.Port == port) && (r.Role == "" || r.Role == from.Role) && (r.Agent == "" || r.Agent == from.Agent) && (r.Project == "" || r.Project == from.project) && r.Alive(now)
}

// sameRule says whether two rules do the same, whoever made them.
func (s *Service) sameRule(a, b *Rule) bool {
	c := *b
	c.Owner = a.Owner
	return s.kind.Same(a, &c)
}

func compareRules(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), cmp.Compare(a.What(), b.What()), cmp.Compare(a.Whom(), b.Whom()))
}
