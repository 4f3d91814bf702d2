package swarmfile

import (
	"path/filepath"

	"swarmdeck/engine/document"
)

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
