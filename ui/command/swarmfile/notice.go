package swarmfile

import (
	"swarmdeck/engine/document"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
)

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
