package command

import (
	"bytes"
	"encoding/json"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/tools"
)

// reach refuses an agent's options that reach for the engine's machine from
// another one: its places are not to be named there, and where its secrets go
// is for an admin to say, or was said before: an agent with the same is there.
func (c *call) reach(runtime string, options core.Raw) error {
	if !c.env.Abroad {
		return nil
	}
	places, secrets := c.eng.Fleet.Reach(runtime, options)
	var err error
	switch {
	case len(places) > 0:
		err = core.Errorf(core.Denied, "options.%s: what is on the machine of the data file can't be named from another one", places[0]).With("field", "options."+places[0])
	case len(secrets) > 0 && !c.env.Role.Includes(Admin) && !slices.ContainsFunc(c.eng.Fleet.Live(c.by.Tenant), func(a *fleet.Agent) bool {
		return a.Runtime == runtime && sameOptions(a.Options, options, "url", "token_env", "token_file")
	}):
		err = core.Errorf(core.Denied, "options.%s: where the engine's secrets go needs the role %s from another machine, you are %s; what an agent has that is there may be named", secrets[0], Admin, c.env.Role).With("field", "options."+secrets[0])
	}
	if err != nil && c.env.Refused != nil {
		c.env.Refused(c.by, err)
	}
	return err
}

// mayServe refuses a server that reaches for the engine's machine from another
// one.
func (c *call) mayServe(s tools.Server) error {
	if c.env.Abroad && s.Any() {
		err := core.Errorf(core.Denied, "read, write and hide: what is on the machine of the data file can't be named from another one").With("field", "read")
		if c.env.Refused != nil {
			c.env.Refused(c.by, err)
		}
		return err
	}
	return c.mayOpen("server", s.Profile)
}

// mayOpen refuses an open agent or server to whoever has fewer rights than it would have.
func (c *call) mayOpen(what, profile string) error {
	if profile != "open" || !c.env.Abroad || c.env.Role.Includes(Admin) {
		return nil
	}
	err := core.Errorf(core.Denied, "profile: an open %s reaches all that the engine's user reaches, which needs the role %s from another machine, you are %s", what, Admin, c.env.Role).With("field", "profile")
	if c.env.Refused != nil {
		c.env.Refused(c.by, err)
	}
	return err
}

// sameOptions compares some members of two objects.
func sameOptions(a, b core.Raw, names ...string) bool {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !bytes.Equal(x[name], y[name]) })
}
