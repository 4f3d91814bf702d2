// Package files keeps what the processes of a tenant may read and write beside
// the directory that they work in, and what is hidden from them: by rules for
// everybody, a role or an agent.
//
// It opens no file. Whoever starts a process asks Places and holds it to the
// answer: what is hidden wins over what may be written, and that over what may
// be read. A change is for processes that start later.
package files

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/health"
	"swarmdeck/engine/record"
	"swarmdeck/engine/safeopen"
)

const subjectRule = "files.rule" // in the audit log

const maxRules = 500 // of a tenant: each is a mount of a process

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Tenants func(context.Context) ([]string, error)
	Own     *safeopen.Own // the engine's own files, which no rule gives
	Health  *health.Troubles
}

// Service keeps the rules. It is safe for concurrent use.
type Service struct {
	ledger *audit.Ledger
	own    *safeopen.Own
	kind   record.Table[Rule]

	mu    sync.Mutex                 // guards what follows
	rules map[string]map[string]Rule // by tenant and ID
}

// New reads the rules of every tenant.
func New(ctx context.Context, opt Options) (*Service, error) {
	s := &Service{ledger: opt.Ledger, own: opt.Own, rules: map[string]map[string]Rule{}}
	s.kind = &record.Kind[*Rule]{
		Noun: "file rule", Subject: subjectRule, Bucket: "files.rule", Limit: maxRules, Ledger: opt.Ledger, Follow: s.follow, Unread: s.unread,
		ID:    (*Rule).ID,
		Whole: true,
	}
	opt.Ledger.Register(s.kind.Auditable())
	if err := s.kind.ReadAll(ctx, opt.Health, opt.Tenants); err != nil {
		return nil, err
	}
	return s, nil
}

// Places are those of the rules for an agent of a role; "" is none. A path is
// in the one list that wins.
func (s *Service) Places(tenant, role, agent string) (p Places) {
	s.mu.Lock()
	defer s.mu.Unlock()
	won := map[string]Effect{}
	for _, r := range s.rules[tenant] {
		if r.concerns(role, agent) && rank(r.Effect) > rank(won[r.Path]) {
			won[r.Path] = r.Effect
		}
	}
	for _, path := range slices.Sorted(maps.Keys(won)) {
		switch won[path] {
		case Read:
			p.Read = append(p.Read, path)
		case Write:
			p.Write = append(p.Write, path)
		case Hide:
			p.Hide = append(p.Hide, path)
		}
	}
	return p
}

func rank(e Effect) int { return slices.Index([]Effect{Read, Write, Hide}, e) }

// Put makes a rule as it is given, and says what that did: created, changed or
// unchanged. A rule about the same path for the same is replaced.
func (s *Service) Put(ctx context.Context, by core.Caller, r Rule) (_ Rule, action string, err error) {
	if err := s.kind.ByOperator(ctx, by, r.ID()); err != nil {
		return r, "", err
	}
	if err := r.Check(); err != nil {
		return r, "", err
	}
	if err := s.own.Check(r.Path); err != nil && r.Effect != Hide {
		return r, "", s.ledger.Refuse(ctx, by, audit.Entry{Type: "files.rule.refused", Subject: subjectRule, ID: r.ID()}, err)
	}
	err = s.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		r.Owner = by.Name
		action, err = s.kind.Put(tx, record.Event{Type: "files." + string(r.Effect)}, &r, func(a, b *Rule) bool { return a.Effect == b.Effect })
		return err
	})
	return r, action, err
}

// Remove ends a rule.
func (s *Service) Remove(ctx context.Context, by core.Caller, id string) (gone Rule, err error) {
	if err := s.kind.ByOperator(ctx, by, id); err != nil {
		return gone, err
	}
	return record.Value(s.kind.Delete(ctx, by, "files.removed", id))
}

// Rules lists a tenant's rules by path.
func (s *Service) Rules(ctx context.Context, tenant string) ([]Rule, error) {
	all, err := record.Values(s.kind.List(ctx, tenant))
	core.Sort(all, compareRules)
	return all, err
}

// follow takes over what a commit did to a rule; nil removed it.
func (s *Service) follow(tenant, id string, r *Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		delete(s.rules[tenant], id)
		return
	}
	if s.rules[tenant] == nil {
		s.rules[tenant] = map[string]Rule{}
	}
	s.rules[tenant][id] = *r
}

// unread hides the path of a rule that can't be read: it may have said so.
func (s *Service) unread(tenant, id string) {
	r := Rule{TenantID: tenant, Effect: Hide, Path: id}
	for word, of := range map[string]*string{"role ": &r.Role, "agent ": &r.Agent} {
		rest, ok := strings.CutPrefix(id, word)
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			continue
		}
		*of, _ = strconv.Unquote(quoted)
		r.Path = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	s.follow(tenant, id, &r)
}

// Places are files and directories beside the one that a process works in:
// absolute paths, or such as begin with ~ for the home of the engine's user.
type Places struct {
	Read  []string `json:"read,omitempty"`  // what it may read besides
	Write []string `json:"write,omitempty"` // and write
	Hide  []string `json:"hide,omitempty"`  // what of all this is not there
	Guard []string `json:"-"`               // names at the top of shared directories that stay as they are, beside those of package guarded
}

// Bounds of places.
const (
	maxPlaces = 64   // in one list
	maxPath   = 2048 // bytes
)

// Any reports whether any place is named.
func (p Places) Any() bool { return len(p.Read)+len(p.Write)+len(p.Hide) > 0 }

// OfOptions are the places that an agent's options name; none where these make
// no sense.
func OfOptions(options core.Raw) (p Places) {
	if len(options) == 0 || core.DecodeStored(options, &p) != nil {
		return Places{}
	}
	return p
}

// With are the places together with others.
func (p Places) With(o Places) Places {
	return Places{Read: slices.Concat(p.Read, o.Read), Write: slices.Concat(p.Write, o.Write), Hide: slices.Concat(p.Hide, o.Hide)}
}

// Full are the places by absolute paths. The error names the list that is
// wrong, below a prefix such as "options.".
func (p Places) Full(prefix string) (full Places, err error) {
	for _, l := range []struct {
		field string
		from  []string
		to    *[]string
	}{{"read", p.Read, &full.Read}, {"write", p.Write, &full.Write}, {"hide", p.Hide, &full.Hide}} {
		if len(l.from) > maxPlaces {
			return full, core.Invalid(prefix+l.field, len(l.from), fmt.Sprintf("at most %d places", maxPlaces))
		}
		for _, path := range l.from {
			one, err := fullPath(prefix+l.field, path)
			if err != nil {
				return full, err
			}
			*l.to = append(*l.to, one)
		}
	}
	return full, nil
}

func fullPath(field, path string) (string, error) {
	full := path
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s: find the home of %q: %w", field, path, err)
		}
		full = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(full) || filepath.Clean(full) == "/" || strings.IndexByte(full, 0) >= 0 || len(full) > maxPath {
		return "", core.Invalid(field, path, fmt.Sprintf("an absolute path, not /, or one that begins with ~/; at most %d bytes", maxPath))
	}
	return filepath.Clean(full), nil
}
