// Package tools keeps which servers of the Model Context Protocol a tenant
// uses. A driver runs them, lists their tools and calls these.
package tools

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/record"
	"swarmdeck/engine/secret"
)

// Server is one server: a command that speaks on stdin and stdout, or a URL.
type Server struct {
	TenantID string     `json:"tenant_id"`
	Name     string     `json:"name" allow:"1-40 of a-z 0-9 -, beginning with a letter or digit"`
	Command  []string   `json:"command,omitempty"`
	Env      secret.Env `json:"env,omitempty"` // shows references only
	Dir      string     `json:"dir,omitempty"` // absolute; "" is a directory of its own
	// Profile is how much of the machine the command reaches: reader, worker,
	// open; "" is worker.
	Profile string `json:"profile,omitempty" allow:"none or reader, worker, open"`
	files.Places
	URL string `json:"url,omitempty"`
	// Headers of requests to the URL: by name, the variable of the engine's
	// environment that holds the value. So no secret is kept.
	Headers map[string]string `json:"headers,omitempty"`
	// CallTimeoutS is how long a call of a tool may go without an answer; 0 means
	// DefaultCallTimeout.
	CallTimeoutS int       `json:"call_timeout_s,omitzero" allow:"none or 1s-24h"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	Given        int       `json:"given,omitzero"` // how often a credential given in clear was exchanged
	AuditSeq     uint64    `json:"audit_seq,omitzero"`
}

// DefaultCallTimeout is how long a call of a tool may go without an answer where
// its server says nothing else.
const DefaultCallTimeout = 5 * time.Minute

// CallTimeout is how long a call of a tool may go without an answer.
func (s *Server) CallTimeout() time.Duration {
	if s.CallTimeoutS == 0 {
		return DefaultCallTimeout
	}
	return time.Duration(s.CallTimeoutS) * time.Second
}

// worker is the profile of servers that name none.
const worker = "worker"

// Tool is a tool of a server, its texts clean and bounded.
type Tool struct {
	Server      string   `json:"server"`
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	InputSchema core.Raw `json:"input_schema"`
	// Digest is of all that the server says of it: name, description, schemas, annotations.
	// Said is the same for people, as it is: its texts are not clean.
	Digest string `json:"digest"`
	Said   string `json:"-"`
	// ReadOnly is what it is annotated as: it changes nothing, and nothing hears of it.
	ReadOnly bool `json:"read_only,omitzero"`
}

// Source lists the tools of servers; a driver is one.
type Source interface {
	Tools(ctx context.Context, s Server) ([]Tool, error)
}

// Options of New.
type Options struct {
	Ledger  *audit.Ledger
	Source  Source          // nil where nothing runs
	Secrets *secret.Secrets // keep credentials out of records; nil keeps none
}

// Tools keeps the servers of every tenant.
type Tools struct {
	ledger  *audit.Ledger
	kind    record.Table[Server]
	source  Source
	secrets *secret.Secrets
}

// New makes it.
func New(opt Options) *Tools {
	t := &Tools{ledger: opt.Ledger, source: opt.Source, secrets: opt.Secrets, kind: &record.Kind[*Server]{
		Noun: "server", Subject: "mcp_server", Bucket: "mcp.server", Ledger: opt.Ledger,
		ID:     func(s *Server) string { return s.Name },
		Stored: (*Server).stored, State: (*Server).state,
	}}
	opt.Ledger.Register(t.kind.Auditable())
	return t
}

// stored is a server with the values of its environment, which it doesn't show.
func (s *Server) stored() any {
	return struct {
		Server
		Env map[string]string `json:"env,omitempty"`
	}{*s, s.Env}
}

var (
	headerName = core.Pattern(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)
	envName    = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)
)

// Check reports the first bad field of a server.
func (s *Server) Check() error {
	if err := bound.Check(s); err != nil {
		return err
	}
	switch {
	case (len(s.Command) == 0) == (s.URL == ""):
		return core.Errorf(core.InvalidInput, "server %s: want either command or url", s.Name).With("field", "command")
	case s.URL != "" && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://"):
		return core.Invalid("url", s.URL, "an http or https URL")
	case s.URL != "" && (len(s.Env) > 0 || s.Dir != ""):
		return core.Invalid("env", "", "env and dir only beside a command")
	case s.URL != "" && (s.Profile != "" || s.Any()):
		return core.Invalid("profile", s.Profile, "profile, read, write and hide only beside a command")
	case s.URL == "" && len(s.Headers) > 0:
		return core.Invalid("headers", "", "headers only beside a url")
	case s.Dir != "" && !filepath.IsAbs(s.Dir):
		return core.Invalid("dir", s.Dir, "an absolute path")
	}
	for name, from := range s.Headers {
		if !headerName().MatchString(name) {
			return core.Invalid("headers", name, "names of HTTP headers")
		}
		if !envName().MatchString(from) {
			return core.Invalid("headers."+name, from, "the name of an environment variable that holds the value")
		}
	}
	if err := secret.CheckWords("command", s.Command); err != nil {
		return err
	}
	_, err := s.Full("")
	return err
}

// Digest names what the server is made of: another one is another server.
func (s *Server) Digest() string {
	parts := []any{s.Command, map[string]string(s.Env), s.Dir, s.URL, s.Headers}
	if s.Given > 0 {
		parts = append(parts, s.Given)
	}
	if s.Profile != "" && s.Profile != worker || s.Any() {
		parts = append(parts, s.Profile, s.Places)
	}
	if s.CallTimeoutS != 0 {
		parts = append(parts, s.CallTimeoutS)
	}
	d, err := core.Digest(parts)
	if err != nil { // texts always can
		panic("tools: digest of a server: " + err.Error())
	}
	return d
}

// state is what reconcile compares. Values of the environment stay out of the
// log.
func (s *Server) state() any {
	return struct {
		Command []string          `json:"command,omitempty"`
		Dir     string            `json:"dir,omitempty"`
		Env     []string          `json:"env,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Profile string            `json:"profile,omitempty"`
		files.Places
		CallTimeoutS int `json:"call_timeout_s,omitzero"`
	}{s.Command, s.Dir, slices.Sorted(maps.Keys(s.Env)), s.URL, s.Headers, s.Profile, s.Places, s.CallTimeoutS}
}

// Put makes a server as it is given and says what that did: created, changed
// or unchanged.
func (t *Tools) Put(ctx context.Context, by core.Caller, s Server) (_ Server, action string, err error) {
	if err := s.Check(); err != nil {
		return s, "", err
	}
	if s.Profile == "" && s.URL == "" {
		s.Profile = worker
	}
	exchanged, err := t.conceal(ctx, by, &s)
	if err != nil {
		return s, "", err
	}
	err = t.ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := t.kind.Load(tx, s.Name)
		if err != nil {
			return err
		}
		if old != nil {
			if s.Given = old.Given; exchanged {
				s.Given++
			}
		}
		action, err = t.kind.Put(tx, record.Event{}, &s, nil)
		return err
	})
	return s, action, err
}

// conceal checks what a server's environment refers to, and keeps credentials
// that are given in clear as secrets. It reports whether one has a new value.
func (t *Tools) conceal(ctx context.Context, by core.Caller, s *Server) (changed bool, err error) {
	if t.secrets == nil {
		return false, secret.CheckEnv(s.Env)
	}
	if err := t.secrets.Check(ctx, by, s.Env); err != nil {
		return false, err
	}
	env, taken, err := t.secrets.Take(ctx, by, "server:"+s.Name, s.Env)
	if err != nil {
		return false, err
	}
	s.Env = env
	return slices.ContainsFunc(taken, func(t secret.Taken) bool { return t.Changed }), nil
}

// Remove forgets a server.
func (t *Tools) Remove(ctx context.Context, by core.Caller, name string) (Server, error) {
	return record.Value(t.kind.Delete(ctx, by, "mcp_server.removed", name))
}

// Server returns one server.
func (t *Tools) Server(ctx context.Context, tenant, name string) (Server, error) {
	return record.Value(t.kind.Get(ctx, tenant, name))
}

// Servers lists the servers by name.
func (t *Tools) Servers(ctx context.Context, tenant string) ([]Server, error) {
	return record.Values(t.kind.List(ctx, tenant))
}

// List lists the tools of one server by name, or with "" of all.
func (t *Tools) List(ctx context.Context, tenant, server string) ([]Tool, error) {
	if t.source == nil {
		return nil, core.Errorf(core.Unavailable, "no servers run here")
	}
	servers, err := t.Servers(ctx, tenant)
	if server != "" {
		var s Server
		s, err = t.Server(ctx, tenant, server)
		servers = []Server{s}
	}
	if err != nil {
		return nil, err
	}
	var all []Tool
	for _, s := range servers {
		found, err := t.source.Tools(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("list the tools of %s: %w", s.Name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}
