// Package builtin carries out the skills that need no program of their own:
// echo, sleep, http-get, file-read, file-write, json-query and
// wait-for-message.
//
// Their parameters come from files, agents and the network: each is bounded
// and checked here again, whatever a skill's own schema lets through. They run
// within the engine, where nothing can end them from outside, so each ends by
// itself when its try does; a query, which could take any amount of time and
// memory, has a process of its own.
package builtin

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/safeopen"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
)

// Kind is the runner kind that Runner serves.
const Kind = "builtin"

// Options of New.
type Options struct {
	// Dir is where relative paths of a person start, absolute. Files are read and written
	// below it only.
	Dir string
	// Scope tells what whoever asked for a task may name; nil is all below Dir.
	Scope func(tenant, task string) (reach.Scope, error)
	// Own are the engine's own files, which are refused.
	Own *safeopen.Own
	// Refused is told when a call reached for one of them, or out of its scope; nil is not.
	Refused func(ctx context.Context, call skill.Call, err error)
	// Messages is where wait-for-message waits; without it, that can't start.
	Messages Messages
	// Commands runs the command that Query is; without it, json-query can't
	// start.
	Commands skill.Runner
	// Query is a command that does nothing but Answer a query.
	Query []string
}

// Messages is the bus as far as a skill waits for it.
type Messages interface {
	// Wait takes the next message that fits: of a topic pattern, or with ""
	// of the agent's mailbox. The message is a JSON object.
	Wait(ctx context.Context, tenant, agentID, topic string) (core.Raw, error)
}

// Runner carries out the builtin skills.
type Runner struct {
	opt   Options
	funcs map[string]skill.Func // by the runner section's name; nil for json-query
}

var (
	_ skill.Runner   = (*Runner)(nil)
	_ skill.Effecter = (*Runner)(nil)
	_ skill.Placed   = (*Runner)(nil)
)

// New returns a runner of the builtin skills.
func New(opt Options) *Runner {
	r := &Runner{opt: opt}
	r.funcs = map[string]skill.Func{
		"echo": echo, "sleep": sleep, "http-get": httpGet, "file-read": r.fileRead, "file-write": r.fileWrite,
		"json-query": nil, "wait-for-message": r.waitForMessage,
	}
	return r
}

func (r *Runner) Check(spec skill.Spec) error {
	if _, ok := r.funcs[spec.Name]; !ok {
		return core.Invalid("runner.name", spec.Name, strings.Join(names(), ", "))
	}
	return nil
}

// Effects implements skill.Effecter: what a builtin does is what its own
// definition says, under whatever name a file offers it.
func (r *Runner) Effects(spec skill.Spec) []skill.Effect {
	for _, s := range Definitions() {
		if s.Runner.Name == spec.Name {
			return s.Effects
		}
	}
	return nil
}

func (r *Runner) Start(ctx context.Context, call skill.Call) (swarm.Work, error) {
	if err := r.Check(call.Skill.Runner); err != nil {
		return nil, err
	}
	name := call.Skill.Runner.Name
	if name == "json-query" && r.opt.Commands == nil || name == "wait-for-message" && r.opt.Messages == nil {
		return nil, core.Errorf(core.Unavailable, "%s needs an engine that runs", name)
	}
	if fn := r.funcs[name]; fn != nil {
		return skill.RunFunc(ctx, call, fn), nil
	}
	return r.query(ctx, call)
}

func names() []string {
	list := core.Map(Definitions(), func(s skill.Skill) string { return s.Runner.Name })
	slices.Sort(list)
	return list
}

// read decodes a call's parameters strictly.
func read(call skill.Call, params any) error {
	if len(call.Params) == 0 {
		return core.Decode([]byte(`{}`), params)
	}
	if err := core.Decode(call.Params, params); err != nil {
		return err
	}
	return bound.Check(params)
}

// maxPath is the longest path, in bytes (PATH_MAX).
const maxPath = 4096

// file is one that a call names: below root, as which it is opened.
type file struct{ root, name string }

func (f file) path() string { return filepath.Join(f.root, f.name) }

// file settles a path as whoever asked for a task may name it.
func (r *Runner) file(tenant, task, p string) (f file, err error) {
	if p == "" || len(p) > maxPath || strings.IndexByte(p, 0) >= 0 {
		return f, core.Invalid("path", p, "a path of 1-4096 bytes")
	}
	if strings.HasSuffix(p, "/") {
		return f, core.Invalid("path", p, "the path of a file, without a slash at its end")
	}
	scope := reach.Scope{Free: true}
	if r.opt.Scope != nil {
		if scope, err = r.opt.Scope(tenant, task); err != nil {
			return f, err
		}
	}
	if f.root = r.opt.Dir; !scope.Free {
		if p, err = scope.Named("path", p); err != nil {
			return f, err
		}
		f.root = scope.Root(p)
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(f.root, p)
	}
	f.name, err = filepath.Rel(f.root, filepath.Clean(p))
	if err != nil || !filepath.IsLocal(f.name) {
		return f, core.Invalid("path", p, "a path within "+f.root)
	}
	return f, nil
}

// defaultBytes is the most that is brought back unless max_bytes says more.
const defaultBytes = 256 << 10
