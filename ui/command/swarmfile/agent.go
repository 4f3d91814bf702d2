package swarmfile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"swarmdeck/engine/document"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/host"
)

func (r reader) agent(v value, vars Vars) Agent {
	a := Agent{Line: v.Line()}
	a.Lines = r.Object(v, map[string]func(value){
		"name":    func(v value) { a.Name = r.Word(v) },
		"runtime": func(v value) { a.Runtime = r.Word(v) },
		"project": func(v value) { a.Project = r.Word(v) },
		"role":    func(v value) { a.Role = r.Word(v) },
		"from":    func(v value) { a.From = r.Word(v) },
		"command": func(v value) { a.Command = r.command(v, vars) },
		"env":     func(v value) { a.Env = r.texts(v, vars) },
		"dir":     func(v value) { a.Dir = vars.expand(r.Text(v)) },
		"host":    func(v value) { a.Host = r.Word(v) },
		"on":      func(v value) { a.On = r.selector(v) },
		"tree":    func(v value) { a.Tree = new(r.Bool(v)) },
		"base":    func(v value) { a.Base = r.Word(v) },
		"times": func(v value) {
			if a.Times = int(r.Integer(v)); a.Times < 1 || a.Times > fleet.MaxTimes {
				r.Bad(v, a.Times, fmt.Sprintf("1-%d", fleet.MaxTimes))
			}
		},
		"options": func(v value) { a.Options = r.options(v, vars) },
		"profile": func(v value) { a.Profile = r.Word(v) },
		"egress":  func(v value) { a.Egress = document.Each(r.Reader, v, r.Word) },
		"session": func(v value) { a.Session = r.Word(v) },
		"task":    func(v value) { a.Task = r.Text(v) },
	}, "name", "project")
	if a.Tree == nil && (a.Base != "" || a.Times > 1) {
		a.Tree = new(true)
	}
	treed := a.Tree != nil && *a.Tree
	switch {
	case a.Host != "" && a.On != "":
		r.Fail(v.Child("on"), "host names a host and on has one chosen: give one of them")
	case (a.Host != "" || a.On != "") && !treed: // the directory is there, or one of the agent's own
	case !filepath.IsAbs(a.Dir):
		a.Dir = filepath.Join(vars.Dir, a.Dir)
	}
	switch {
	case a.From == "":
		a.Runtime = cmp.Or(a.Runtime, "exec")
	case a.Role != "":
		r.Fail(v.Child("from"), "from says the role: give no other")
	default:
		a.Role = a.From
	}
	if !treed && (a.Base != "" || a.Times > 1) {
		r.Fail(v.Child("tree"), "base and times are of an agent with a tree: no tree: false beside them")
	}
	if a.From == "" && (a.Runtime == "exec" || a.Runtime == "acp" || a.Runtime == "terminal") && len(a.Command) == 0 {
		r.Fail(v.Child("command"), "missing; the %s runtime needs it", a.Runtime)
	}
	return a
}

// tries are the agents of a file, with each that is there several times as so many.
func tries(all []Agent) (out []Agent) {
	for _, a := range all {
		if a.Times == 0 {
			out = append(out, a)
			continue
		}
		for _, name := range fleet.Attempts(a.Name, a.Times) {
			one := a
			one.Name, one.Times = name, 0
			out = append(out, one)
		}
	}
	return out
}

func (r reader) command(v value, vars Vars) []string {
	words := document.Each(r.Reader, v, r.Text)
	for i := range words {
		words[i] = vars.expand(words[i])
	}
	if len(words) > 0 && (strings.HasPrefix(words[0], "./") || strings.HasPrefix(words[0], "../")) {
		words[0] = filepath.Join(vars.Dir, words[0])
	}
	return words
}

// selector is the labels that a host must have: LABEL=VALUE, with commas.
func (r reader) selector(v value) string {
	s, err := host.ParseSelector("on", r.Word(v))
	if err != nil {
		r.Fail(v, "%v", err)
	}
	return s.String()
}
