// Package coding knows the coding agents that people have: their programs, how each is
// spoken to, by what it is logged in and which hosts it needs. Its table is data, which
// a file of the user adds to.
package coding

import (
	"cmp"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
)

//go:embed agents.yaml
var builtin []byte

// MaxFile is the largest file of agents in bytes.
const MaxFile = 64 << 10

// Agent is a coding agent, whether it is there or not.
type Agent struct {
	Name     string
	About    string
	Program  string   // on PATH, that prints its version
	Version  []string // its arguments for that
	Ways     []Way    // how it is spoken to, the best first
	Env      map[string]string
	Login    Login
	Settings []string // that it needs of the home, each ~/…
	Install  string   // the command that installs it
	Hosts    []string // that it reaches unasked: presets of egress, or hosts
}

// Way is how an agent is spoken to.
type Way struct {
	Runtime string // acp, exec, terminal
	Command []string
	Options core.Raw // of the runtime; nil for none
	Asks    string   // what it asks about by itself
}

// Login is by what an agent is logged in: any of it will do.
type Login struct {
	Command   string   // that logs in
	Files     []string // each ~/…
	Variables []string // of credentials
}

// Load is the table with the user's file over it; nil data is none. The error names
// file, line and field.
func Load(path string, data []byte) ([]Agent, error) {
	all, err := read("agents.yaml", builtin)
	if err != nil || len(data) == 0 {
		return all, err
	}
	own, err := read(path, data)
	for _, a := range own {
		if at := slices.IndexFunc(all, func(b Agent) bool { return b.Name == a.Name }); at >= 0 {
			all[at] = a
		} else {
			all = append(all, a)
		}
	}
	return all, err
}

func read(path string, data []byte) (all []Agent, err error) {
	r := document.NewReader(path)
	if root, ok := r.Parse(data, MaxFile); ok {
		r.Object(root, map[string]func(document.Value){
			"agents": func(v document.Value) {
				all = document.Each(r, v, func(v document.Value) Agent { return agent(r, v) })
			},
		}, "agents")
	}
	return all, r.Err()
}

func agent(r *document.Reader, v document.Value) (a Agent) {
	type value = document.Value
	a.Version = []string{"--version"}
	word := func(into *string) func(value) { return func(v value) { *into = r.Word(v) } }
	words := func(into *[]string) func(value) {
		return func(v value) { *into = document.Each(r, v, r.Word) }
	}
	home := func(into *[]string) func(value) {
		return func(v value) {
			*into = document.Each(r, v, func(v value) string {
				path := r.Word(v)
				if rest, of := strings.CutPrefix(path, "~/"); !of || !filepath.IsLocal(rest) {
					r.Bad(v, path, "a path that begins with ~/")
				}
				return path
			})
		}
	}
	r.Object(v, map[string]func(value){
		"name":    func(v value) { a.Name = r.Word(v); r.Check(v, fleet.CheckNewName(a.Name)) },
		"about":   word(&a.About),
		"program": word(&a.Program),
		"version": words(&a.Version),
		"ways": func(v value) {
			if a.Ways = document.Each(r, v, func(v value) Way { return way(r, v) }); len(a.Ways) == 0 {
				r.Fail(v, "wants one way at least")
			}
		},
		"env": func(v value) { a.Env = r.Texts(v) },
		"login": func(v value) {
			r.Object(v, map[string]func(value){
				"command": word(&a.Login.Command), "files": home(&a.Login.Files), "variables": words(&a.Login.Variables),
			}, "command")
		},
		"settings": home(&a.Settings),
		"install":  word(&a.Install),
		"hosts": func(v value) {
			a.Hosts = document.Each(r, v, func(v value) string {
				host := r.Word(v)
				_, err := egress.NewRule(egress.Allow, host)
				r.Check(v, err)
				return host
			})
		},
	}, "name", "about", "program", "ways", "login", "install")
	return a
}

func way(r *document.Reader, v document.Value) (w Way) {
	r.Object(v, map[string]func(document.Value){
		"runtime": func(v document.Value) {
			if w.Runtime = r.Word(v); !slices.Contains([]string{"acp", "exec", "terminal"}, w.Runtime) {
				r.Bad(v, w.Runtime, "acp, exec, terminal")
			}
		},
		"command": func(v document.Value) {
			if w.Command = document.Each(r, v, r.Word); len(w.Command) == 0 {
				r.Fail(v, "wants a program")
			}
		},
		"options": func(v document.Value) {
			if v.Kind() != document.Mapping {
				r.Want(v, document.Mapping)
				return
			}
			w.Options = r.Raw(v)
		},
		"asks": func(v document.Value) { w.Asks = r.Word(v) },
	}, "runtime", "command", "asks")
	return w
}

// Way is the best of its ways whose program is in a list as PATH is.
func (a *Agent) Way(path string) (Way, bool) {
	for _, w := range a.Ways {
		if reach.Program(w.Command[0], path) != "" {
			return w, true
		}
	}
	return Way{}, false
}

// Prints is the command that prints its version, for one that is spoken to by w.
func (a *Agent) Prints(path string, w Way) []string {
	program := cmp.Or(reach.Program(a.Program, path), reach.Program(w.Command[0], path))
	return append([]string{program}, a.Version...)
}

// LoggedIn is by what an agent would be logged in: a file of a home, else the variable of
// a credential that is there; "" for nothing. Nothing is read.
func (a *Agent) LoggedIn(home string, has func(variable string) bool) (file, variable string) {
	for _, path := range a.Login.Files {
		if info, err := os.Stat(filepath.Join(home, strings.TrimPrefix(path, "~/"))); err == nil && info.Size() > 0 {
			return path, ""
		}
	}
	if at := slices.IndexFunc(a.Login.Variables, has); at >= 0 {
		return "", a.Login.Variables[at]
	}
	return "", ""
}

// Find is the agent of a name.
func Find(all []Agent, name string) (Agent, error) {
	var names []string
	for _, a := range all {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Agent{}, core.Invalid("agent", name, strings.Join(names, ", "))
}
