package command

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/op"
	"swarmdeck/engine/reach"
	"swarmdeck/engine/secret"
	"swarmdeck/ui/command/coding"
	"swarmdeck/ui/command/swarmfile"
)

// greetingWait is how long an added agent may take to be ready: some take 50 s on a
// machine that is busy.
const greetingWait = 90 * time.Second

// Added is a coding agent that was added.
type Added struct {
	Agent   string            `json:"agent"`
	Action  string            `json:"action"` // created, changed, unchanged
	Status  fleet.AgentStatus `json:"status"`
	Reason  string            `json:"reason,omitempty"` // why it is not ready
	Program string            `json:"program"`
	Version string            `json:"version,omitempty"`
	Wire    string            `json:"wire"`
	Login   string            `json:"login,omitempty"`  // by what it is logged in; "" where nothing was found
	LogIn   string            `json:"log_in,omitempty"` // the command that does so, where nothing was found
	Project string            `json:"project"`
	Dir     string            `json:"dir"`
	Branch  string            `json:"branch,omitempty"` // of its tree; "" where it shares the directory
	Profile string            `json:"profile"`
	Asks    string            `json:"asks"`
	Hosts   []string          `json:"hosts"`
	TaskID  string            `json:"task_id,omitempty"`

	kind, about string // of the table
}

func (t *tree) add() *cobra.Command {
	var name, text string
	var all bool
	treed := true
	return t.command(spec{
		use: "add [AGENT]", short: "Add a coding agent that is on your PATH: with a tree, hosts and your login", effect: Reads, args: []string{"coding"}, ownScope: true,
		long: "Add a coding agent that is on your PATH, such as claude, codex or gemini: it gets a project, the repository's name; a work\n" +
			"tree of its own; the profile worker; a copy of your login at each start; and the hosts of its models. It is started, and\n" +
			"what it may do is told. On a terminal the login of one that is not logged in is offered, and opened right there. Without\n" +
			"AGENT, those that can be added are listed, and how to get the others. One that this project has already is brought up\n" +
			"to date and started; for another say --name.\n" +
			"A key that is no login of the program's own is a secret by its variable's name: secret set ANTHROPIC_API_KEY.\n" +
			"agents.yaml in the configuration directory adds agents to the list.",
		example: "add claude\nadd codex --name fixer --task 'make the tests pass'",
		flags: func(f *pflag.FlagSet) {
			f.BoolVar(&all, "all", false, "add all that are found")
			f.StringVar(&name, "name", "", "`NAME` of the agent (default that of the program, or with -2, -3 where another project has it)")
			f.StringVar(&text, "task", "", "first task: `TEXT`")
			f.BoolVar(&treed, "tree", true, "=false shares the directory in place of a work tree of its own")
		},
		check: func(c *call, args []string) error {
			switch {
			case c.env.Remote:
				return core.Errorf(core.Denied, "add: only on the machine of the data file, whose programs it looks for").With("field", "command")
			case all && (len(args) > 0 || name != ""):
				return usage("all", "add: --all takes no AGENT and no --name")
			case !all && len(args) == 0:
				return nil
			}
			return errors.Join(c.change(Approver), c.activate()) // hosts are an approver's to allow
		},
		run: func(c *call, args []string) error {
			rows, err := LoadCoding(c.env.getenv)
			if err != nil {
				return err
			}
			if !all && len(args) == 0 {
				return c.listBy(face.Of[Seen]{
					Columns: "AGENT:name VERSION:version LOGIN PROGRAM NEXT:next,60", Wide: "WIRE:wire", ID: "name",
					Cells: face.Cells[Seen]{
						"PROGRAM": func(s *Seen, _ face.At) string { return cmp.Or(s.Program, "not found") },
						"LOGIN":   func(s *Seen, _ face.At) string { return s.Login },
					},
				}.Face(), c.seen(rows, func(v string) bool { return c.env.getenv(v) != "" }))
			}
			if all {
				if rows, err = foundCoding(c.env.getenv); err == nil && len(rows) == 0 {
					err = core.Errorf(core.NotFound, "add: no coding agent is on your PATH; add lists how to get them").With("field", "agent")
				}
			} else {
				var row coding.Agent
				row, err = coding.Find(rows, args[0])
				rows = []coding.Agent{row}
			}
			if err != nil {
				return err
			}
			if err := errors.Join(c.logIn(rows), c.scope()); err != nil {
				return err
			}
			return c.addAll(c.seen(rows, c.hasSecret()), fleet.Create{Name: name, Task: text}, treed)
		},
	})
}

// logIn offers the login of those that are not logged in, where the caller sits: before
// an engine is asked, which may be another process.
func (c *call) logIn(rows []coding.Agent) error {
	for _, row := range rows {
		_, found := row.Way(c.env.getenv("PATH"))
		file, variable := row.LoggedIn(baseDir(c.env.getenv, "", ""), func(name string) bool { return c.env.getenv(name) != "" })
		argv, err := Split(row.Login.Command)
		if c.env.LogIn == nil || !found || file != "" || variable != "" || err != nil || len(argv) == 0 {
			continue
		}
		if err := c.env.LogIn(c.ctx, row.Name, argv); err != nil {
			return core.Errorf(core.Unavailable, "log %s in by %s: %v", row.Name, core.Join(argv), err).With("field", "agent")
		}
	}
	return nil
}

// hasSecret tells whether the tenant has a secret of a name.
func (c *call) hasSecret() func(name string) bool {
	all, _ := c.eng.Secrets.List(c.ctx, c.by.Tenant) // what can't be read is not given
	return func(name string) bool {
		return slices.ContainsFunc(all, func(s secret.Secret) bool { return s.Name == name })
	}
}

// addAll adds one agent after the other, and tells of each.
func (c *call) addAll(all []Seen, as fleet.Create, treed bool) error {
	var failed []error
	for _, s := range all {
		made, err := c.addOne(s, as, treed)
		if made.Agent != "" {
			if err := c.verbatim(made, c.shown(made.told(len(all) > 1, c.env.Attached))); err != nil {
				return err
			}
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return &op.Failed{Err: err}
	}
	return nil
}

// addOne makes an agent as a swarm file with it would, starts it and waits for it.
func (c *call) addOne(s Seen, as fleet.Create, treed bool) (made Added, err error) {
	if s.Program == "" {
		return made, core.Errorf(core.NotFound, "%s: the program %s is not on your PATH; get it: %s", s.Name, s.row.Program, s.row.Install).With("field", "agent").With("value", s.Name)
	}
	dir, err := filepath.Abs(c.env.path("."))
	if err != nil {
		return made, err
	}
	project := cmp.Or(fleet.Label(c.eng.Trees.Repository(dir)), fleet.Label(filepath.Base(dir)), "project")
	want := swarmfile.Agent{
		Name: as.Name, Runtime: s.way.Runtime, Project: project, Role: "coder", Command: s.way.Command, Dir: dir, Profile: "worker",
		Options: s.options(), Env: map[string]string{"PATH": c.env.getenv("PATH")}, Egress: s.row.Hosts,
	}
	if !treed {
		want.Tree = &treed
	}
	for name, value := range s.row.Env {
		want.Env[name] = value
	}
	if slices.Contains(s.row.Login.Variables, s.Login) {
		want.Env[s.Login] = "@" + s.Login
	}
	if want.Name == "" {
		want.Name = c.freeName(s, project)
	}
	have, err := c.eng.Fleet.Agent(c.ctx, c.by.Tenant, want.Name)
	there := err == nil
	if there && !s.isOf(have, project) {
		return made, core.Errorf(core.Conflict, "name: agent %q exists already, and is not %s of project %s; say another --name", want.Name, s.Name, project).With("field", "name").With("value", want.Name)
	}
	if path := have.Env["PATH"]; reach.Program(want.Command[0], path) != "" { // it goes on with what it was made with
		want.Env["PATH"] = path
	}
	a := c.applier()
	file := &swarmfile.File{Path: "add", Agents: []swarmfile.Agent{want}}
	if err := a.check(file); err != nil {
		return made, err
	}
	if err := a.agent(file, want); err != nil {
		return made, err
	}
	if there && have.Status != fleet.Busy { // with the login that there is now
		if _, err := c.eng.Fleet.Restart(c.ctx, c.by, want.Name); err != nil {
			return made, err
		}
	}
	call := c.forOp()
	agent, err := call.AwaitAgent(c.ctx, want.Name, greetingWait)
	if err != nil {
		return made, err
	}
	made = Added{
		Agent: agent.Name, Action: a.done[len(a.done)-1].Action, Status: agent.Status, Reason: agent.Reason, Program: s.Program, Version: s.Version, Wire: s.Wire,
		Login: s.Login, Project: agent.Project, Dir: agent.Dir, Profile: agent.Profile, Asks: s.way.Asks, Hosts: s.row.Hosts, kind: s.Name, about: s.About,
	}
	if s.Login == "" {
		made.LogIn = s.row.Login.Command
		for _, key := range s.row.Login.Variables {
			if c.env.getenv(key) != "" {
				made.LogIn = "printenv " + key + " | swarmdeck secret set " + key
				break
			}
		}
	}
	if t, has := c.eng.Trees.Has(c.by.Tenant, agent.Name); has {
		made.Branch = t.Branch
	}
	if !made.ready() {
		why := core.Errorf(core.Unavailable, "%s is %s: %s", agent.Name, agent.Status, cmp.Or(agent.Reason, "it was not ready after "+greetingWait.String()))
		return made, why.With("field", "agent").With("value", agent.Name)
	}
	if as.Task == "" {
		return made, nil
	}
	told, err := c.eng.Fleet.Tell(c.ctx, c.by, agent.Name, as.Task, "", false)
	made.TaskID = told.TaskID
	return made, err
}

// isOf reports an agent of a project that is spoken to in one of these ways.
func (s *Seen) isOf(a fleet.Agent, project string) bool {
	return a.Project == project && len(a.Command) > 0 &&
		slices.ContainsFunc(s.row.Ways, func(w coding.Way) bool { return w.Runtime == a.Runtime && w.Command[0] == a.Command[0] })
}

// freeName is the name of the project's agent of this kind, else one that is free.
func (c *call) freeName(s Seen, project string) (name string) {
	for n := 1; ; n++ {
		if name = s.Name; n > 1 {
			name = fmt.Sprintf("%s-%d", s.Name, n)
		}
		if a, err := c.eng.Fleet.Agent(c.ctx, c.by.Tenant, name); err != nil || s.isOf(a, project) {
			return name
		}
	}
}

// options are those of its way, with the login that its home gets.
func (s *Seen) options() core.Raw {
	all := map[string]core.Raw{}
	if s.way.Options != nil {
		_ = core.DecodeStored(s.way.Options, &all) // an object, as the table was read
	}
	if login := slices.Concat(s.row.Login.Files, s.row.Settings); len(login) > 0 {
		all["login"] = core.MustEncode(login)
	}
	return core.MustEncode(all)
}

// told is it on some lines: what it is, what it may do, what is next; on one where it is
// one of several.
func (a *Added) told(one, attached bool) string {
	state := string(a.Status)
	switch {
	case a.ready() && a.LogIn == "":
		state = "ready"
	case a.ready():
		state = "started"
	}
	what := strings.TrimSpace(a.about+" "+a.Version) + ", by " + a.Wire
	login := a.LogIn
	switch {
	case login != "":
		login = "none found; log in: " + login + "; then: swarmdeck add " + a.kind
	case strings.HasPrefix(a.Login, "~/"):
		login = "yours, copied at each start: " + a.Login
	default:
		login = "secret " + a.Login
	}
	if one {
		return fmt.Sprintf("%-12s  %-8s  %s; login: %s\n", a.Agent, state, what, login)
	}
	where := a.Dir + ", which you share with it"
	if a.Branch != "" {
		where = a.Dir + ", branch " + a.Branch
	}
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "  %-9s %s\n", name, text) }
	fmt.Fprintf(&b, "%s is %s: %s (%s)\n", a.Agent, state, what, a.Action)
	line("program", a.Program)
	line("login", login)
	line("project", a.Project)
	line("works in", where)
	line("asks", a.Asks+"; its cell holds the rest: profile "+a.Profile)
	line("reaches", strings.Join(a.Hosts, ", ")+"; any other host asks you first")
	if a.TaskID != "" {
		line("task", a.TaskID)
	}
	b.WriteString("next\n")
	next := func(text, does string) { fmt.Fprintf(&b, "  swarmdeck %-28s %s\n", text, does) }
	if !a.ready() {
		next("log "+a.Agent, "what it said")
		return b.String()
	}
	next("tell "+a.Agent+" 'TEXT'", "give it work")
	if a.Wire == "terminal" {
		next("agent attach "+a.Agent, "its own screen")
	}
	if a.Branch != "" {
		next("agent diff "+a.Agent, "what it changed; review accept "+a.Agent+" takes it over")
	}
	if !attached {
		next("", "the cockpit: agents work while it, or swarmdeck serve, runs")
	}
	return b.String()
}

func (a *Added) ready() bool { return a.Status == fleet.Idle || a.Status == fleet.Busy }
