package command

import (
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/ui/command/coding"
)

// LoadCoding reads the table of coding agents: the built-in ones and, over them,
// agents.yaml of the user's ConfigDir.
func LoadCoding(getenv func(string) string) ([]coding.Agent, error) {
	name := filepath.Join(ConfigDir(getenv), "agents.yaml")
	data, err := userFile(name, coding.MaxFile)
	if err != nil {
		return nil, err
	}
	all, err := coding.Load(name, data)
	if err != nil {
		err = inFile(err)
	}
	return all, err
}

// foundCoding are the agents of the table of which a way is on PATH.
func foundCoding(getenv func(string) string) (found []coding.Agent, err error) {
	all, err := LoadCoding(getenv)
	return core.Where(all, func(a coding.Agent) bool {
		_, has := a.Way(getenv("PATH"))
		return has
	}), err
}

// FoundCoding are the names of those that are found, for a cockpit to offer.
func FoundCoding(getenv func(string) string) string {
	found, _ := foundCoding(getenv) // a mistake in the file is told by add
	return strings.Join(core.Map(found, func(a coding.Agent) string { return a.Name }), ", ")
}

// Seen is a coding agent as it was found, or was not.
type Seen struct {
	Name    string `json:"name"`
	About   string `json:"about"`
	Program string `json:"program,omitempty"` // "" where none of its programs is on PATH
	Version string `json:"version,omitempty"` // "" where it does not say
	Wire    string `json:"wire,omitempty"`    // the runtime that speaks to it
	Login   string `json:"login,omitempty"`   // the file or the variable by which it is logged in
	Next    string `json:"next"`              // the command that installs it, logs in or adds it, whichever is missing

	row coding.Agent
	way coding.Way
}

// seen looks for agents of the table. Nothing of a login is read.
func (c *call) seen(rows []coding.Agent, secret func(variable string) bool) []Seen {
	path, home := c.env.getenv("PATH"), baseDir(c.env.getenv, "", "")
	all := make([]Seen, len(rows))
	var asked [][]string
	for i, row := range rows {
		s := Seen{Name: row.Name, About: row.About, row: row}
		way, has := row.Way(path)
		if !has {
			s.Next = row.Install
			all[i] = s
			continue
		}
		prints := row.Prints(path, way)
		s.way, s.Wire, s.Program, s.Next = way, way.Runtime, prints[0], "swarmdeck add "+row.Name
		asked = append(asked, prints)
		if file, variable := row.LoggedIn(home, secret); file != "" {
			s.Login = file
		} else if s.Login = variable; variable == "" {
			s.Next = row.Login.Command
		}
		all[i] = s
	}
	if c.env.Doctor == nil || len(asked) == 0 {
		return all
	}
	said := c.env.Doctor(c.ctx, Look{Versions: asked, Data: c.g.Data, Getenv: c.env.getenv})
	for i := range all {
		if at := slices.IndexFunc(said, func(k Check) bool { return k.Check == all[i].Program }); at >= 0 && all[i].Program != "" {
			all[i].Version = core.ClipTo(said[at].Detail, 40)
		}
	}
	return all
}
