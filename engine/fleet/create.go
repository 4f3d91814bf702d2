package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/core"
	"swarmdeck/engine/record"
	"swarmdeck/engine/secret"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
)

// Create makes an agent, its project and its role, and hands it its first
// task. When the agent was made but its task was refused, both are returned:
// the agent and the error.
func (f *Fleet) Create(ctx context.Context, by core.Caller, c Create) (Agent, error) {
	a, err := f.add(ctx, by, &c)
	if err != nil {
		return Agent{}, err
	}
	m := f.member(by.Tenant, c.Name)
	if c.Task == "" || m == nil {
		return a, nil
	}
	if _, err := f.give(ctx, by, m, c.Task, "", c.Session); err != nil {
		return *m.rec.Load(), fmt.Errorf("agent %s was created, but not given its task: %w", c.Name, err)
	}
	return *m.rec.Load(), nil
}

// add makes an agent without a task. Those that get their places on hosts are made one
// after the other, so that none has more than it takes.
func (f *Fleet) add(ctx context.Context, by core.Caller, c *Create) (a Agent, err error) {
	if c.Host != "" || c.On != "" {
		f.placing.Lock()
		defer f.placing.Unlock()
	}
	if err := f.checkCreate(ctx, by, c); err != nil {
		return Agent{}, err
	}
	if f.opt.Taken != nil && f.opt.Taken(by.Tenant, c.Name) {
		return Agent{}, taken(c.Name)
	}
	seen, err := f.logEnd(ctx, by.Tenant, c.Name)
	if err != nil {
		return Agent{}, err
	}
	if _, err := f.conceal(ctx, by, c); err != nil {
		return Agent{}, err
	}
	earlier, err := f.opt.Tasks.List(ctx, by.Tenant, core.Filter{Agent: c.Name, Size: 1})
	if err != nil {
		return Agent{}, err
	}
	err = f.opt.Ledger.Update(ctx, by, func(tx *audit.Tx) error {
		old, err := f.agents.Load(tx, c.Name)
		if err != nil {
			return err
		}
		if old != nil {
			return taken(c.Name)
		}
		if err := f.addRole(tx, c.Project, c.Role); err != nil {
			return err
		}
		a = Agent{
			Name: c.Name, Status: Starting, Role: c.Role, Project: c.Project, LastTask: core.ClipTo(c.Task, maxLast), Runtime: c.Runtime,
			Command: c.Command, Env: c.Env, Dir: c.Dir, Host: c.Host, On: c.On, Options: c.Options, Profile: c.Profile, SessionID: c.Session,
			LogFrom: seen, Reused: earlier.Info.Total > 0, WorkspaceID: workspaceID(by.Tenant, *c), Forked: c.Forked,
			Prompt: c.Prompt, Tools: c.Tools,
		}
		if c.Limits != nil {
			if err := f.opt.Swarm.Budgets.Give(tx, c.Limits.of(c.Name)); err != nil {
				return fmt.Errorf("budget: %w", err)
			}
		}
		return f.agents.Save(tx, record.Event{Type: "agent.created", Detail: createdDetail(*c)}, nil, &a)
	})
	if err != nil {
		return Agent{}, err
	}
	return a, nil
}

// checkCreate fills the defaults in and reports the first bad field.
func (f *Fleet) checkCreate(ctx context.Context, by core.Caller, c *Create) error {
	c.Runtime, c.Role = cmp.Or(c.Runtime, "exec"), cmp.Or(c.Role, "coder")
	if err := f.choose(ctx, by.Tenant, c); err != nil {
		return err
	}
	if bad := f.Check(*c); len(bad) > 0 {
		return bad[0]
	}
	c.Options, _ = checkOptions(c.Options)
	if w, ok := f.opt.Runtimes[c.Runtime].(Walled); ok {
		c.Profile = cmp.Or(c.Profile, w.Profile())
	}
	if err := f.checkHost(ctx, by, c); err != nil {
		return err
	}
	if f.opt.Secrets != nil {
		if err := f.opt.Secrets.Check(ctx, by, c.Env); err != nil {
			return err
		}
	}
	if c.Session == "" {
		return nil
	}
	s, err := f.opt.Swarm.Sessions.Get(ctx, by.Tenant, c.Session)
	if err != nil {
		return err
	}
	c.Session = s.SessionID // it may have been named by its name
	return nil
}

// conceal keeps credentials that are given in clear as secrets, so that the
// record only refers to them. It reports whether one has a new value.
func (f *roster) conceal(ctx context.Context, by core.Caller, c *Create) (changed bool, err error) {
	if f.opt.Secrets == nil {
		return false, nil
	}
	env, taken, err := f.opt.Secrets.Take(ctx, by, "agent:"+c.Name, c.Env)
	if err != nil {
		return false, err
	}
	c.Env = env
	return slices.ContainsFunc(taken, func(t secret.Taken) bool { return t.Changed }), nil
}

// Check lists what Create and Update would refuse about c's fields, each
// error naming its field. Whether the name is free and the session there is
// not looked at.
func (f *Fleet) Check(c Create) (bad []error) {
	add := func(err error) {
		if err != nil {
			bad = append(bad, err)
		}
	}
	c.Host = cmp.Or(c.Host, c.On) // whichever is chosen
	add(CheckNewName(c.Name))
	add(checkLabel("project", c.Project))
	add(checkLabel("role", cmp.Or(c.Role, "coder")))
	add(secret.CheckWords("command", c.Command))
	if c.Task != "" {
		if err := checkMessage(c.Task); err != nil {
			add(fmt.Errorf("task: %w", err))
		}
	}
	if _, err := checkOptions(c.Options); err != nil {
		return append(bad, err)
	}
	runtime := cmp.Or(c.Runtime, "exec")
	if rt, ok := f.opt.Runtimes[runtime]; ok {
		add(rt.Check(c))
		if h, is := rt.(Hosted); c.Host != "" && (!is || !h.Hosted()) {
			add(core.Invalid("host", c.Host, "none: no agents of the "+runtime+" runtime run on hosts"))
		}
		if _, walled := rt.(Walled); !walled && c.Profile != "" {
			add(core.Invalid("profile", c.Profile, "none: the "+runtime+" runtime has no say in what its agents reach"))
		}
	} else {
		add(core.Invalid("runtime", runtime, f.runtimes()))
	}
	return bad
}

func (f *roster) runtimes() string {
	return strings.Join(slices.Sorted(maps.Keys(f.opt.Runtimes)), ", ")
}

// workspaceID stands for the workspace of an agent that has none of its own
// kind: the place where it runs. An agent made again in the same place by the
// same name gets the same one.
func workspaceID(tenant string, c Create) string {
	return stableID("workspace", tenant, c.Runtime, c.Name, c.Dir)
}

// createdDetail keeps values of the environment out of the log for ever.
func createdDetail(c Create) any {
	return struct {
		Command []string `json:"command,omitempty"`
		Dir     string   `json:"dir,omitempty"`
		Host    string   `json:"host,omitempty"`
		On      string   `json:"on,omitempty"`
		Options core.Raw `json:"options,omitempty"`
		Profile string   `json:"profile,omitempty"`
		Env     []string `json:"env,omitempty"` // names only
		Tools   []string `json:"tools,omitempty"`
		Forked  *Origin  `json:"forked,omitempty"`
	}{c.Command, c.Dir, c.Host, c.On, c.Options, c.Profile, slices.Sorted(maps.Keys(c.Env)), c.Tools, c.Forked}
}

// addRole records a project and a role of it that are not there yet.
func (f *roster) addRole(tx *audit.Tx, project, role string) error {
	tenant := tx.Tenant()
	p := Project{ID: stableID("project", tenant, project), Name: project}
	r := Role{ID: stableID("role", tenant, project, role), Name: role, ProjectID: p.ID, ProjectName: project}
	return errors.Join(keep(tx, f.projects, p.key(), p, false), keep(tx, f.roles, r.key(), r, false))
}

// As reports that an agent is made as c says, for which no profile is any.
func (a *Agent) As(c *Create) bool {
	return a.Project == c.Project && a.Role == c.Role && a.Runtime == c.Runtime && a.Dir == c.Dir && a.Host == c.Host && a.SessionID == c.Session &&
		slices.Equal(a.Command, c.Command) && maps.Equal(a.Env, c.Env) && bytes.Equal(a.Options, c.Options) &&
		(c.Profile == "" || a.Profile == c.Profile) && a.Prompt == c.Prompt && slices.Equal(a.Tools, c.Tools)
}

// Update changes what an agent is made of: project, role, command,
// environment, directory, options, session, prompt and tools. Its name, history and log stay. An idle
// runtime is opened anew at once, a busy one when its task has ended.
func (f *Fleet) Update(ctx context.Context, by core.Caller, name string, c Create) (Agent, error) {
	m, err := f.find(ctx, by, name)
	if err != nil {
		return Agent{}, err
	}
	c.Name, c.Task = name, ""
	c.Runtime = cmp.Or(c.Runtime, m.rec.Load().Runtime)
	if err := c.stays(m.rec.Load()); err != nil {
		return Agent{}, err
	}
	if err := f.checkCreate(ctx, by, &c); err != nil {
		return Agent{}, err
	}
	exchanged, err := f.conceal(ctx, by, &c)
	if err != nil {
		return Agent{}, err
	}
	changed := false
	a, err := f.change(ctx, by, m, record.Event{Type: "agent.updated", Detail: createdDetail(c)}, func(tx *audit.Tx, a *Agent) error {
		if a.As(&c) && !exchanged {
			return errSame
		}
		if err := f.addRole(tx, c.Project, c.Role); err != nil {
			return err
		}
		a.Project, a.Role, a.Runtime, a.SessionID = c.Project, c.Role, c.Runtime, c.Session
		a.Command, a.Env, a.Dir, a.Host, a.Options, a.Profile = c.Command, c.Env, c.Dir, c.Host, c.Options, c.Profile
		a.Prompt, a.Tools = c.Prompt, c.Tools
		a.WorkspaceID = workspaceID(by.Tenant, c)
		changed = true
		return nil
	})
	if err == nil && changed {
		m.renew()
	}
	return a, err
}

// give dispatches a task to an agent and remembers it until it starts. What an
// agent gives while it works comes from its own task.
func (f *Fleet) give(ctx context.Context, by core.Caller, m *member, message, uri, session string) (task.Task, error) {
	parent := ""
	if giver := f.member(by.Tenant, by.Name); by.Kind == core.Agent && giver != nil {
		parent = giver.rec.Load().TaskID
	}
	t, err := f.opt.Swarm.Dispatch(ctx, by, swarm.Dispatch{
		Kind: KindPrompt, Agent: m.name, Session: session, Parent: parent,
		Input: core.MustEncode(prompt{Agent: m.name, Message: message, URI: uri}),
	})
	if err != nil {
		return t, err
	}
	m.Change(func() { m.assigned = t.TaskID })
	return t, nil
}

// Bounds of what a record keeps of texts from outside.
const (
	maxLabel   = 64   // project and role names, in characters
	maxURI     = 2048 // bytes
	maxLast    = 1000 // bytes of Agent.LastTask
	maxReason  = 500  // bytes of a reason or an attention text
	maxIntent  = 300  // bytes of a tool request's intent
	maxTitle   = 120  // bytes of a task's title
	maxCall    = 128  // bytes of a call id or a tool name
	maxOptions = 64 << 10
	maxLine    = 64 << 10
)

var namePattern = core.Pattern(`^[a-zA-Z0-9-]{1,20}$`)

func checkName(name string) error {
	if !namePattern().MatchString(name) {
		return core.Invalid("name", name, "1-20 of a-z A-Z 0-9 -")
	}
	return nil
}

// CheckNewName reports a name that no new agent can have: it is malformed, or one
// that the message bus gives to the engine itself.
func CheckNewName(name string) error {
	if slices.Contains(bus.Components(), name) {
		return core.Invalid("name", name, "any but "+strings.Join(bus.Components(), ", ")+", which stand for the engine's own in messages")
	}
	return checkName(name)
}

// checkLabel reports a project or role name that a list could not show.
func checkLabel(field, s string) error {
	n := utf8.RuneCountInString(s)
	if n < 1 || n > maxLabel || !utf8.ValidString(s) || strings.TrimSpace(s) != s || !core.Printable(s) {
		return core.Invalid(field, s, fmt.Sprintf("1-%d printable characters without space around them", maxLabel))
	}
	return nil
}

// Label is a name as a project can have it; "" for none.
func Label(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '-'
		}
		return r
	}, name)
	if name = strings.TrimSpace(name[:min(maxLabel, len(name))]); strings.Trim(name, "./-") == "" {
		return ""
	}
	return name
}

// checkOptions reports options that are no JSON object, and gives their
// compact form, nil for none. What they mean is the runtime's to check.
func checkOptions(options core.Raw) (core.Raw, error) {
	if len(options) == 0 {
		return nil, nil
	}
	if err := core.CheckObject("options", options, maxOptions); err != nil {
		return nil, err
	}
	compact := core.Raw(bytes.Clone(options))
	if err := compact.Compact(); err != nil {
		return nil, core.Errorf(core.InvalidInput, "options: not valid JSON: %v", err).With("field", "options")
	}
	if string(compact) == "{}" {
		return nil, nil
	}
	return compact, nil
}

func checkMessage(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return core.Invalid("message", s, "a text that is not only white space")
	case !utf8.ValidString(s):
		return core.Invalid("message", "invalid UTF-8", "UTF-8 text")
	case len(s) > core.MaxInput:
		return core.Invalid("message", fmt.Sprintf("%d bytes", len(s)), fmt.Sprintf("at most %d bytes", core.MaxInput))
	}
	return nil
}

func checkURI(s string) error {
	if len(s) > maxURI || !utf8.ValidString(s) || !core.Printable(s) {
		return core.Invalid("uri", s, fmt.Sprintf("at most %d bytes of printable text", maxURI))
	}
	return nil
}

// oneLine is the first line with text in it, without control characters.
func oneLine(s string, n int) string {
	for line := range strings.Lines(s) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
		if line != "" {
			return core.ClipTo(line, n)
		}
	}
	return ""
}

// stableID is a UUID (RFC 9562 version 8) made of the parts alone, so that the
// same thing keeps its id wherever and whenever it is made.
func stableID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// busy is the model's AgentBusyError: only an idle agent takes a task.
func busy(a *Agent, why string) error {
	return core.Errorf(core.Conflict, "agent %s %s; only an idle agent takes a task", a.Name, why).
		With("error", "AgentBusyError").With("field", "agent").With("value", a.Name).With("status", string(a.Status))
}

// taken is the model's AgentAlreadyExistsError.
func taken(name string) error {
	return core.Errorf(core.Conflict, "name: agent %q exists already", name).
		With("error", "AgentAlreadyExistsError").With("field", "name").With("value", name)
}
