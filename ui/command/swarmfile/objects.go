package swarmfile

import (
	"path/filepath"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/tools"
)

// Project is what is kept of a project: what tests its agents' work, and what the
// agents of its roles are made with.
type Project struct {
	Name   string
	Checks []string          // nil leaves them as they are
	Env    map[string]string // of its trees; nil leaves it as it is
	Setup  []string          // of a new tree; nil leaves it as it is
	Egress []string          // hosts and presets that its agents reach unasked
	Roles  []AgentRole
	Line   int
	Lines  Lines
}

// AgentRole is what agents of a role are made with.
type AgentRole struct {
	Name string
	fleet.Template
	Line  int
	Lines Lines
}

func (r reader) project(v value, vars Vars) Project {
	p := Project{Line: v.Line()}
	p.Lines = r.Object(v, map[string]func(value){
		"name":   func(v value) { p.Name = r.Word(v) },
		"checks": func(v value) { p.Checks = append([]string{}, document.Each(r.Reader, v, r.Text)...) },
		"egress": func(v value) { p.Egress = document.Each(r.Reader, v, r.Word) },
		"tree": func(v value) {
			r.Object(v, map[string]func(value){
				"env": func(v value) {
					if p.Env = r.Texts(v); p.Env == nil {
						p.Env = map[string]string{}
					}
				},
				"setup": func(v value) { p.Setup = append([]string{}, document.Each(r.Reader, v, r.Text)...) },
			})
		},
		"roles": func(v value) {
			p.Roles = document.Each(r.Reader, v, func(v value) AgentRole { return r.agentRole(v, vars) })
		},
	}, "name")
	seen := map[string]bool{}
	for _, a := range p.Roles {
		if seen[a.Name] {
			r.At(a.Line, "projects.roles.name", document.Clip(a.Name)+" is already a role of this project")
		}
		seen[a.Name] = true
	}
	return p
}

func (r reader) agentRole(v value, vars Vars) AgentRole {
	a := AgentRole{Line: v.Line()}
	var limits Limits
	a.Lines = r.Object(v, map[string]func(value){
		"name":    func(v value) { a.Name = r.Word(v) },
		"runtime": func(v value) { a.Runtime = r.Word(v) },
		"command": func(v value) { a.Command = r.command(v, vars) },
		"options": func(v value) { a.Options = r.options(v, vars) },
		"prompt":  func(v value) { a.Prompt = r.Text(v) },
		"profile": func(v value) { a.Profile = r.Word(v) },
		"tools":   func(v value) { a.Tools = document.Each(r.Reader, v, r.Text) },
		"budget":  func(v value) { r.Object(v, r.limits(&limits)) },
	}, "name")
	if limits != (Limits{}) {
		a.Limits = &fleet.Limits{Tokens: limits.Tokens, CostUSD: limits.Cost, Tasks: limits.Tasks, WallS: core.Seconds(limits.Wall)}
	}
	return a
}

// Operator is a person of the tenant.
type Operator struct {
	operator.Operator
	Line int
}

// operator reads a name, a role, users, public keys and groups.
func (r reader) operator(v value) Operator {
	o := Operator{Line: v.Line()}
	r.Object(v, map[string]func(value){
		"name":   func(v value) { o.Name = r.Text(v) },
		"role":   func(v value) { o.Role = operator.Role(r.Word(v)) },
		"uids":   func(v value) { o.Users = parsed(r, v, operator.ParseUser) },
		"groups": func(v value) { o.Groups = document.Each(r.Reader, v, r.Text) },
		"keys":   func(v value) { o.Keys = parsed(r, v, operator.ParseKey) },
	}, "name", "role")
	if o.Name != "" {
		r.refuse(v, o.Check())
	}
	return o
}

// parsed are texts, each as what it stands for.
func parsed[T any](r reader, v value, parse func(string) (T, error)) []T {
	return document.Each(r.Reader, v, func(v value) T {
		one, err := parse(r.Text(v))
		r.Check(v, err)
		return one
	})
}

// Policy is what the judge is to go by.
type Policy struct {
	File        string // path of a table (.yaml, .yml, .json) or a program
	Tests       string // path of its cases
	Interpreter []string
	Serve       bool
	Gates       []string
	Line        int
	Lines       Lines
}

// policy reads a file, its cases, and how a program is run.
func (r reader) policy(v value, vars Vars) *Policy {
	p := &Policy{Line: v.Line()}
	path := func(v value) string {
		text := vars.expand(r.Text(v))
		if text != "" && !filepath.IsAbs(text) {
			text = filepath.Join(vars.Dir, text)
		}
		return text
	}
	p.Lines = r.Object(v, map[string]func(value){
		"file":        func(v value) { p.File = path(v) },
		"tests":       func(v value) { p.Tests = path(v) },
		"interpreter": func(v value) { p.Interpreter = document.Each(r.Reader, v, r.Text) },
		"serve":       func(v value) { p.Serve = r.Bool(v) },
		"gates":       func(v value) { p.Gates = document.Each(r.Reader, v, r.Text) },
	}, "file", "tests")
	return p
}

// Server is one server of the Model Context Protocol whose tools are used.
type Server struct {
	tools.Server
	Line int
}

// server reads a command with env and dir, or a url with headers, whose values
// are names of environment variables.
func (r reader) server(v value, vars Vars) Server {
	s := Server{Line: v.Line()}
	r.Object(v, map[string]func(value){
		"name":    func(v value) { s.Name = r.Word(v) },
		"command": func(v value) { s.Command = r.command(v, vars) },
		"env":     func(v value) { s.Env = r.texts(v, vars) },
		"dir": func(v value) {
			if s.Dir = vars.expand(r.Text(v)); !filepath.IsAbs(s.Dir) {
				s.Dir = filepath.Join(vars.Dir, s.Dir)
			}
		},
		"profile": func(v value) { s.Profile = r.Word(v) },
		"read":    func(v value) { s.Read = r.command(v, vars) },
		"write":   func(v value) { s.Write = r.command(v, vars) },
		"hide":    func(v value) { s.Hide = r.command(v, vars) },
		"url":     func(v value) { s.URL = r.Word(v) },
		"headers": func(v value) { s.Headers = r.Texts(v) },
		"call_timeout": func(v value) {
			s.CallTimeoutS = int((r.Duration(v) + time.Second - 1) / time.Second)
		},
	}, "name")
	if s.Name != "" {
		r.refuse(v, s.Check())
	}
	return s
}

// Notice says what is told to whom.
type Notice struct {
	notice.Notice
	Line int
}

// notice reads a name, events, and a url or a command.
func (r reader) notice(v value, vars Vars) Notice {
	n := Notice{Line: v.Line()}
	r.Object(v, map[string]func(value){
		"name":       func(v value) { n.Name = r.Word(v) },
		"events":     func(v value) { n.Events = document.Each(r.Reader, v, r.Text) },
		"min_risk":   func(v value) { n.MinRisk = judge.Risk(r.Word(v)) },
		"url":        func(v value) { n.URL = r.Text(v) },
		"command":    func(v value) { n.Command = r.command(v, vars) },
		"secret_env": func(v value) { n.SecretEnv = r.Text(v) },
		"rate":       func(v value) { n.Rate = r.Range(v, 1, 600) },
	}, "name", "events")
	if n.Name != "" && len(n.Events) > 0 {
		r.refuse(v, n.Check())
	}
	return n
}
