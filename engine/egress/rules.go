package egress

import (
	"context"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
)

// index finds the rules about a host without the store. It never changes.
type index struct {
	exact map[string][]*Rule // by host
	below map[string][]*Rule // by domain, of *.DOMAIN
}

func newIndex(all map[string]*Rule) *index {
	x := &index{exact: map[string][]*Rule{}, below: map[string][]*Rule{}}
	for _, r := range all {
		hosts := r.Hosts
		if len(hosts) == 0 {
			hosts = []string{r.Host}
		}
		for _, h := range hosts {
			if domain, wild := strings.CutPrefix(h, "*."); wild {
				x.below[domain] = append(x.below[domain], r)
			} else {
				x.exact[h] = append(x.exact[h], r)
			}
		}
	}
	return x
}

// ruling is what the rules say about a connection; Allow and Deny may both be
// nil.
type ruling struct {
	allow, deny *Rule
	private     bool // an allowing rule lets the addresses be closed ones
	opaque      bool // an allowing rule keeps it from being looked into
}

// rule looks up what is wanted. A deny wins, however wide it is.
func (x *index) rule(from *Origin, to *Request, now time.Time) (found ruling) {
	if x == nil {
		return found
	}
	look := func(rules []*Rule) {
		for _, r := range rules {
			switch {
			case !r.concerns(from, to.Port, now) || !r.covers(to):
			case r.Effect == Deny:
				found.deny = r
			default:
				found.private, found.opaque = found.private || r.Private, found.opaque || r.Opaque
				if found.allow == nil {
					found.allow = r
				}
			}
		}
	}
	look(x.exact[to.Host])
	for domain := to.Host; len(x.below) > 0; {
		_, rest, more := strings.Cut(domain, ".")
		if !more {
			break
		}
		domain = rest
		look(x.below[domain])
	}
	return found
}

// Put makes a rule as it is given, which ends after expires, 0 for never, and
// says what that did: created, changed or unchanged. A rule about the same for
// the same is replaced, an allow by a deny too.
func (s *Service) Put(ctx context.Context, by core.Caller, r Rule, expires time.Duration) (_ Rule, action string, err error) {
	if err := s.kind.ByOperator(ctx, by, r.ID()); err != nil {
		return r, "", err
	}
	if err := r.Check(); err != nil {
		return r, "", err
	}
	if expires != 0 && (expires < minExpiry || expires > maxExpiry) {
		return r, "", core.Invalid("for", expires, "1s-8784h (366 days)")
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		if r.Owner, r.ExpiresAt = by.Name, (time.Time{}); expires != 0 {
			r.ExpiresAt = tx.Now().Add(expires)
		}
		action, err = s.kind.Put(tx, record.Event{Type: "egress." + string(r.Effect)}, &r, s.sameRule)
		return err
	})
	return r, action, err
}

// Remove ends a rule: its host is neither allowed nor denied by it any more.
func (s *Service) Remove(ctx context.Context, by core.Caller, id string) (gone Rule, err error) {
	if err := s.kind.ByOperator(ctx, by, id); err != nil {
		return gone, err
	}
	return record.Value(s.kind.Delete(ctx, by, "egress.removed", id))
}

// Rules lists a tenant's rules by host; expired ones too.
func (s *Service) Rules(ctx context.Context, tenant string) ([]Rule, error) {
	all, err := record.Values(s.kind.List(ctx, tenant))
	core.Sort(all, compareRules)
	return all, err
}

// follow takes over what a commit did to a rule; nil removed it.
func (s *Service) follow(tenant, id string, r *Rule) {
	s.rules.Change(func() {
		if s.known[tenant] == nil {
			s.known[tenant] = map[string]*Rule{}
		}
		if s.known[tenant][id] = r; r == nil {
			delete(s.known[tenant], id)
		}
		delete(s.indexes, tenant) // made anew when it is asked for
	})
}

// unread refuses all connections to the host of a rule that can't be read: it
// may have said so.
func (s *Service) unread(tenant, id string) {
	where, _, _ := strings.Cut(id, " ")
	r, err := NewRule(Deny, where)
	if err != nil {
		return // no rule has such an id
	}
	r.TenantID, r.Methods = tenant, nil
	s.follow(tenant, id, &r)
}

// index is the tenant's as the rules are now; within a look at them.
func (s *Service) index(tenant string) *index {
	x := s.indexes[tenant]
	if x == nil && len(s.known[tenant]) > 0 {
		x = newIndex(s.known[tenant])
		s.indexes[tenant] = x
	}
	return x
}

// preset is a name that stands for several hosts in a rule. Nothing of it is allowed
// unless a person says so: to publish to a registry is a way out for whatever an agent
// has read.
type preset struct {
	name, about string
	read        bool // a rule about it is about requests that read
	hosts       string
}

func presets() []preset {
	return []preset{
		{"npm", "packages of JavaScript", false, "registry.npmjs.org registry.yarnpkg.com"},
		{"pypi", "packages of Python", false, "files.pythonhosted.org pypi.org"},
		{"go", "modules of Go", false, "proxy.golang.org sum.golang.org"},
		{"crates", "packages of Rust", false, "crates.io index.crates.io static.crates.io"},
		{"debian", "packages of Debian", false, "deb.debian.org security.debian.org"},
		{"anthropic", "models of Anthropic, and the login of Claude Code", false, "api.anthropic.com claude.ai console.anthropic.com platform.claude.com"},
		{"openai", "models of OpenAI, and the login of Codex", false, "api.openai.com auth.openai.com chatgpt.com"},
		{"google", "models of Google, and the login of Gemini CLI", false, "cloudcode-pa.googleapis.com generativelanguage.googleapis.com oauth2.googleapis.com"},
		{"qwen", "models of Alibaba Cloud, and the login of Qwen Code", false, "chat.qwen.ai dashscope-intl.aliyuncs.com dashscope.aliyuncs.com portal.qwen.ai"},
		{"copilot", "GitHub Copilot", false, "*.githubcopilot.com api.github.com"},
		{"augment", "Augment", false, "*.api.augmentcode.com auth.augmentcode.com"},
		{"cline", "Cline", false, "api.cline.bot app.cline.bot"},
		{"opencode", "OpenCode", false, "models.dev opencode.ai"},
		{"kilo", "Kilo Code", false, "api.kilo.ai"},
		{"github-read", "fetches from GitHub, of agents that are inspected", true, "codeload.github.com github.com objects.githubusercontent.com raw.githubusercontent.com release-assets.githubusercontent.com"},
	}
}

// Presets are their names, with what each is about.
func Presets() (names, about []string) {
	for _, p := range presets() {
		names, about = append(names, p.name), append(about, p.about)
	}
	return names, about
}

// expand has a rule that names a preset say what that stands for.
func (r *Rule) expand() {
	for _, p := range presets() {
		if p.name != r.Host {
			continue
		}
		if r.Hosts = strings.Fields(p.hosts); p.read {
			r.Methods = ReadOnly()
		}
	}
}
