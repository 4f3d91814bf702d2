// Package swarmfile reads swarm files: YAML that names a tenant's sessions,
// agents, skills, CAD roles and scenarios, and budgets. Reading is strict and finds every mistake at once, each
// with its file, line and field; nothing is applied here.
package swarmfile

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
)

// MaxSize is the largest swarm file in bytes.
const MaxSize = 256 << 10

// File is one swarm file, valid and with its variables filled in.
type File struct {
	Path      string
	Tenant    string // "" leaves the choice to the caller
	Slots     int    // of the tenant; 0 leaves them as they are
	Sessions  []Session
	Agents    []Agent
	Budgets   []Budget
	Skills    []Skill
	Servers   []Server
	Operators []Operator
	Notices   []Notice
	Projects  []Project
	Roles     []Role // of CAD agents

	Scenarios []cad.WrittenScenario

	Policy *Policy // nil leaves the policy as it is
}

// Role is what CAD agents of a role may do.
type Role struct {
	cad.RoleTemplate
	Line  int
	Lines Lines
}

// Skill is a path that skills are loaded from, or one skill written inline.
type Skill struct {
	Path       string           // absolute; "" for one written inline
	Definition skill.Definition // of the one written inline
	Line       int
}

// Session is a named session.
type Session struct {
	Name   string
	Start  bool // running at once; true unless the file says otherwise
	Budget Limits
	Line   int
	Lines  Lines
}

// Agent is one agent to keep.
type Agent struct {
	Name    string
	Runtime string // "exec" unless the file says otherwise; "" of one made from a role is the role's
	Project string
	Role    string
	Command []string
	Env     map[string]string
	Dir     string
	Tree    *bool    // it works in a tree of the directory, of its own; nil is where that is in a git repository
	Base    string   // the branch that the tree is made from; "" is the one that is checked out
	Host    string   // that it runs on; "" is the engine's machine, or one that On chooses
	On      string   // the labels that its host must have; "" is no choice
	From    string   // role of the project that it is made from; "" is none
	Times   int      // as so many agents, NAME-1 and on, that try the same; 0 is as one
	Options core.Raw // for the runtime; nil for none
	Profile string   // reader, worker or open; "" is the runtime's default
	Egress  []string // hosts and presets that it reaches unasked
	Session string   // name of a session of this file, or an id
	Task    string   // first task, given only when the agent is made
	Line    int
	Lines   Lines
}

// Lines tells where the fields of an object stand.
type Lines = document.Lines

// Budget limits a subject: tenant, session:NAME or agent:NAME.
type Budget struct {
	Subject string
	Limits
	Line  int
	Lines Lines
}

// Limits are what a budget holds; zero is no limit.
type Limits struct {
	Tokens int64
	Cost   float64
	Tasks  int64
	Wall   time.Duration
}

// Vars fill ${DIR} (the file's directory) and ${CWD} (where the command was
// given) in commands, environments and directories. Nothing else is expanded.
type Vars struct{ Dir, CWD string }

func (v Vars) expand(s string) string {
	return strings.NewReplacer("${DIR}", v.Dir, "${CWD}", v.CWD).Replace(s)
}

// reader reads the objects of a swarm file.
type reader struct{ *document.Reader }

type value = document.Value

// Load reads a swarm file. The error is a core.Error whose details list every
// document.Problem under "problems"; the file is then what could be read of it.
func Load(path string, data []byte, vars Vars) (*File, error) {
	r := reader{document.NewReader(path)}
	f := &File{Path: path}
	root, ok := r.Parse(data, MaxSize)
	if !ok {
		return nil, r.Err()
	}
	fields := map[string]func(value){
		"tenant": func(v value) { f.Tenant = r.Text(v); r.Check(v, core.CheckTenant(f.Tenant)) },
		"slots": func(v value) {
			n := r.Integer(v)
			f.Slots = int(min(max(n, -1), swarm.MaxSlots+1))
			r.Check(v, swarm.CheckSlots("slots", f.Slots))
		},
		"sessions": func(v value) { f.Sessions = document.Each(r.Reader, v, r.session) },
		"agents": func(v value) {
			f.Agents = tries(document.Each(r.Reader, v, func(v value) Agent { return r.agent(v, vars) }))
		},
		"budgets": func(v value) { f.Budgets = document.Each(r.Reader, v, r.budget) },
		"mcp_servers": func(v value) {
			f.Servers = document.Each(r.Reader, v, func(v value) Server { return r.server(v, vars) })
		},
		"skills": func(v value) {
			f.Skills = document.Each(r.Reader, v, func(v value) Skill { return r.skill(v, path, vars) })
		},
		"operators": func(v value) { f.Operators = document.Each(r.Reader, v, r.operator) },
		"notices": func(v value) {
			f.Notices = document.Each(r.Reader, v, func(v value) Notice { return r.notice(v, vars) })
		},
		"policy": func(v value) {
			if !v.Empty() {
				f.Policy = r.policy(v, vars)
			}
		},
		"projects": func(v value) {
			f.Projects = document.Each(r.Reader, v, func(v value) Project { return r.project(v, vars) })
		},
		"roles": func(v value) { f.Roles = document.Each(r.Reader, v, r.role) },
		"scenarios": func(v value) {
			f.Scenarios = document.Each(r.Reader, v, func(v value) cad.WrittenScenario { return cad.ReadScenario(r.Reader, v) })
		},
	}
	r.Object(root, fields)
	r.unique(f)
	return f, r.Err()
}

// refuse tells what the engine refuses of an object, at the member that it names if that
// is given; nil is nothing.
func (r reader) refuse(v value, err error) {
	if err == nil {
		return
	}
	if field, ok := core.AsError(err).Details["field"].(string); ok && !v.Field(field).Empty() {
		v = v.Field(field)
	}
	r.Check(v, err)
}

func (r reader) session(v value) Session {
	s := Session{Start: true, Line: v.Line()}
	s.Lines = r.Object(v, map[string]func(value){
		"name":   func(v value) { s.Name = r.Word(v) },
		"start":  func(v value) { s.Start = r.Bool(v) },
		"budget": func(v value) { r.Object(v, r.limits(&s.Budget)) },
	}, "name")
	return s
}

// options are for the agent's runtime, which checks them.
func (r reader) options(v value, vars Vars) core.Raw {
	if v.Kind() != document.Mapping {
		r.Want(v, document.Mapping)
		return nil
	}
	inJSON := func(s string) string {
		quoted := string(core.MustEncode(s))
		return quoted[1 : len(quoted)-1]
	}
	vars = Vars{Dir: inJSON(vars.Dir), CWD: inJSON(vars.CWD)}
	options := core.Raw(vars.expand(string(r.Raw(v))))
	if string(options) == "{}" {
		return nil
	}
	return options
}

func (r reader) texts(v value, vars Vars) map[string]string {
	all := r.Texts(v)
	for name, text := range all {
		all[name] = vars.expand(text)
	}
	return all
}

// skill reads a path, or a skill written inline.
func (r reader) skill(v value, path string, vars Vars) Skill {
	s := Skill{Line: v.Line()}
	if v.Kind() != document.Mapping {
		if s.Path = vars.expand(r.Word(v)); !filepath.IsAbs(s.Path) {
			s.Path = filepath.Join(vars.Dir, s.Path)
		}
		return s
	}
	s.Definition = skill.Define(path, v, filepath.Join(vars.Dir, filepath.Base(path)), vars.Dir)
	for _, p := range s.Definition.Problems() {
		r.Add(p)
	}
	return s
}

func (r reader) role(v value) Role {
	t := Role{RoleTemplate: cad.ReadRole(r.Reader, v), Line: v.Line(), Lines: Lines{}}
	for _, name := range []string{"name", "description", "allowed_operations", "forbidden_operations", "example_tasks"} {
		t.Lines[name] = v.Field(name).Line()
	}
	return t
}

func (r reader) budget(v value) Budget {
	b := Budget{Line: v.Line()}
	fields := r.limits(&b.Limits)
	fields["subject"] = func(v value) {
		b.Subject = r.Word(v)
		kind, name, _ := strings.Cut(b.Subject, ":")
		if b.Subject != "tenant" && (kind != "session" && kind != "agent" || name == "") {
			r.Bad(v, b.Subject, "tenant, session:NAME, agent:NAME")
		}
	}
	b.Lines = r.Object(v, fields, "subject")
	return b
}

func (r reader) limits(l *Limits) map[string]func(value) {
	return map[string]func(value){
		"tokens": func(v value) { l.Tokens = r.Integer(v) },
		"cost":   func(v value) { l.Cost = r.Number(v) },
		"tasks":  func(v value) { l.Tasks = r.Integer(v) },
		"wall":   func(v value) { l.Wall = r.Duration(v) },
	}
}

// unique reports names that are given twice and sessions that are not there.
func (r reader) unique(f *File) {
	seen := map[string]int{}
	once := func(kind, name string, line int) {
		if name == "" {
			return
		}
		if before, twice := seen[kind+name]; twice {
			r.At(line, kind, fmt.Sprintf("%q is already named in line %d", document.Clip(name), before))
			return
		}
		seen[kind+name] = line
	}
	for _, s := range f.Sessions {
		once("sessions.name", s.Name, s.Line)
	}
	for _, a := range f.Agents {
		once("agents.name", a.Name, a.Line)
		if a.Session != "" && seen["sessions.name"+a.Session] == 0 && !isID(a.Session) {
			r.At(a.Line, "agents.session", fmt.Sprintf("%q is no session of this file and no session id", document.Clip(a.Session)))
		}
	}
	for _, o := range f.Operators {
		once("operators.name", o.Name, o.Line)
	}
	for _, n := range f.Notices {
		once("notices.name", n.Name, n.Line)
	}
	for _, x := range f.Roles {
		once("roles.name", x.Name, x.Line)
	}
	for _, p := range f.Projects {
		once("projects.name", p.Name, p.Line)
	}
	for _, s := range f.Scenarios {
		once("scenarios.scenario_name", s.Name, s.Line())
	}
	for _, s := range f.Servers {
		once("mcp_servers.name", s.Name, s.Line)
	}
	for _, b := range f.Budgets {
		once("budgets.subject", b.Subject, b.Line)
		if name, ok := strings.CutPrefix(b.Subject, "session:"); ok && seen["sessions.name"+name] == 0 && !isID(name) {
			r.At(b.Line, "budgets.subject", fmt.Sprintf("%q is no session of this file and no session id", document.Clip(name)))
		}
	}
}

func isID(s string) bool {
	prefix, _, _, ok := core.ParseID(s)
	return ok && prefix == core.SessionPrefix
}
