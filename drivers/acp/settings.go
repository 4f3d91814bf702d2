package acp

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/bound"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/secret"
)

// settings are the options of an agent of this runtime.
type settings struct {
	// Mode is the agent's own permission mode, by its id. It must be given
	// when the agent has modes: some start in one that asks for nothing.
	Mode string `json:"mode,omitempty"`
	// Model is one of those that the agent offers, by its id; "" leaves the choice to it.
	Model string `json:"model,omitempty"`
	// FS is which of our file methods the agent is told about: "" none, "read",
	// "write" both. Agents that call the others anyway are served too.
	FS string `json:"fs,omitempty" allow:"none or read, write"`
	// Terminal tells it about our terminals.
	Terminal bool `json:"terminal,omitzero"`
	// Auth is the login method to use at each start, by its id.
	Auth string `json:"auth,omitempty"`
	keeper.Choices
	// Shared lets agents of the tenant with the same command, environment, home,
	// user, role, profile and recorded models, and unless they are open
	// directory, share one process. It takes far less memory, but one of them can
	// be frozen only while no other works: until then a pause holds its tool
	// calls. Ending a process that does not react ends the others' tasks too.
	Shared bool `json:"shared,omitzero"`
	// IdleStop is how long it may do nothing until its process ends, such as "1h"; the
	// next task starts it again. "" is 15 minutes for one that can take its
	// conversation up again, and never for others; "off" is never.
	IdleStop string `json:"idle_stop,omitempty"`
	// StartTimeout is how long it may take to greet, and to open a session, in seconds; 0 is
	// two minutes.
	StartTimeout int `json:"start_timeout_s,omitzero" allow:"none or 1-3600"`
	// Fresh begins a new conversation for each task.
	Fresh bool `json:"fresh,omitzero"`
	// RecordModels puts a recorder between the agent and its model: what is
	// asked and answered is in its record, and the tokens count for its budgets
	// as they are spent, in place of what it tells itself. It names the variables
	// of its environment that hold the address of the model's API, as
	// modelproxy.Read has it; without it they are the usual ones of the
	// credentials there. An agent that takes the address from elsewhere is not
	// recorded. Of agents that share a process each has what its session
	// says, where the requests name it: see peer.overhear.
	RecordModels []string `json:"record_models,omitempty"`
	// Usage says what its figure of tokens at the end of a turn is: "turn", "session"
	// for the sum so far, or "" to have it found out.
	Usage string `json:"usage,omitempty" allow:"none or turn, session"`
	// User runs it as another account: a name, or UID or UID:GID. Only an
	// engine that runs as root can do that.
	User string `json:"user,omitempty"`
}

// patience is how long it may take to start.
func (s settings) patience(usual time.Duration) time.Duration {
	return cmp.Or(time.Duration(s.StartTimeout)*time.Second, usual)
}

// sleep is how long it may do nothing: 0 as is usual, negative for ever.
func (s settings) sleep() (time.Duration, error) {
	switch s.IdleStop {
	case "":
		return 0, nil
	case "off":
		return -1, nil
	}
	d, err := time.ParseDuration(s.IdleStop)
	if err != nil || d < time.Second || d > 720*time.Hour {
		return 0, core.Invalid("options.idle_stop", s.IdleStop, `"off", or 1s to 720h`)
	}
	return d, nil
}

func readSettings(options core.Raw) (settings, error) {
	var s settings
	if len(options) == 0 {
		return s, nil
	}
	if err := core.Decode(options, &s); err != nil {
		return s, fmt.Errorf("options: %w", err)
	}
	if err := bound.CheckIn("options.", &s); err != nil {
		return s, err
	}
	if _, err := s.sleep(); err != nil {
		return s, err
	}
	if err := s.Options.Check(); err != nil {
		return s, err
	}
	if s.Shared && len(s.Login) > 0 {
		return s, core.Invalid("options.login", strings.Join(s.Login, ","), "none together with shared: a login is given to one agent")
	}
	_, err := s.account()
	return s, err
}

func (*Runtime) Reach(options core.Raw) (places, secrets []string) {
	var s settings
	if core.DecodeStored(options, &s) != nil {
		return nil, nil
	}
	places = s.Outside()
	if s.User != "" {
		places = append(places, "user")
	}
	return places, nil
}

// account is whom the agent runs as; nil for the engine's own user.
func (s settings) account() (*cell.User, error) {
	if s.User == "" {
		return nil, nil
	}
	uid, gid, err := findUser(s.User)
	if err != nil {
		return nil, core.Invalid("options.user", s.User, "a user of this system, UID or UID:GID")
	}
	if os.Geteuid() == int(uid) && os.Getegid() == int(gid) {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, core.Invalid("options.user", s.User, fmt.Sprintf("nobody else than uid %d, unless the engine runs as root", os.Geteuid()))
	}
	return &cell.User{UID: uid, GID: gid}, nil
}

func findUser(name string) (uid, gid uint32, err error) {
	first, second, both := strings.Cut(name, ":")
	number := func(s string) uint32 {
		n, bad := strconv.ParseUint(s, 10, 32)
		err = cmp.Or(err, bad)
		return uint32(n)
	}
	if both {
		return number(first), number(second), err
	}
	known, lookup := user.Lookup(name)
	if lookup != nil {
		known, lookup = user.LookupId(name)
	}
	if lookup == nil {
		return number(known.Uid), number(known.Gid), err
	}
	uid = number(name)
	return uid, uid, err
}

// hides is the mask of what the process was given.
func (pe *peer) hides() *secret.Mask {
	pe.mu.Lock()
	defer pe.mu.Unlock()
	return pe.Mask
}

// overhear passes what a shared process and its model say to each other on to
// the agent whose session it is, else to the only one at work. What is nobody's
// is in no record; its tokens count in equal parts for those at work, or for
// all where none is.
func (pe *peer) overhear(asked fleet.Event) (answered func(fleet.Event)) {
	a, among := pe.speaker(asked.Model)
	if a != nil {
		return keeper.Overhear(a.Now, a.hear)(asked)
	}
	return func(e fleet.Event) {
		var tokens int64
		if e.Model != nil && e.Model.Tokens != nil {
			tokens = max(0, e.Model.Tokens.TotalTokens)
		}
		for i, a := range among {
			part := tokens / int64(len(among))
			if int64(i) < tokens%int64(len(among)) {
				part++
			}
			a.hear(fleet.Event{Type: "log", Level: "INFO", Text: fmt.Sprintf(
				"the process that it shares asked a model, for which of its %d agents can't be told: %s, %d tokens, of which %d count for this one", len(among), e.Status, tokens, part)})
			if part > 0 {
				a.hear(fleet.Event{Type: "usage", Tokens: part, Model: e.Model})
			}
		}
	}
}

// speaker is the agent that a request is of; nil where that can't be told, and
// then those among whom it is, by name.
func (pe *peer) speaker(c *fleet.ModelCall) (one *agent, among []*agent) {
	pe.mu.Lock()
	if c != nil {
		for _, id := range c.Sessions {
			if s := pe.sessions[id]; s != nil {
				pe.mu.Unlock()
				return s.a, nil
			}
		}
	}
	members := pe.agents()
	pe.mu.Unlock()
	for _, a := range members {
		if a.Now() != nil {
			among = append(among, a)
		}
	}
	if len(among) == 0 {
		among = members
	}
	if len(among) == 1 {
		return among[0], nil
	}
	return nil, among
}
