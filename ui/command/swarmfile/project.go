package swarmfile

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/fleet"
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
