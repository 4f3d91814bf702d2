package swarmfile

import (
	"path/filepath"
	"time"

	"swarmdeck/engine/tools"
)

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
