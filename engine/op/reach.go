package op

import (
	"bytes"
	"encoding/json"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/tools"
)

// Reach refuses an agent's options that reach for the engine's machine from
// another one: its places are not to be named there, and where its secrets go
// is for an admin to say, or was said before: an agent with the same is there.
func (c *Call) Reach(runtime string, options core.Raw) error {
	if !c.Remote {
		return nil
	}
	places, secrets := c.Fleet.Reach(runtime, options)
	switch {
	case len(places) > 0:
		return c.refuse("options."+places[0], "options.%s: what is on the machine of the data file can't be named from another one", places[0])
	case len(secrets) > 0 && !c.Role.Includes(Admin) && !slices.ContainsFunc(c.Fleet.Live(c.By.Tenant), func(a *fleet.Agent) bool {
		return a.Runtime == runtime && sameOptions(a.Options, options, "url", "token_env", "token_file")
	}):
		return c.refuse("options."+secrets[0], "options.%s: where the engine's secrets go needs the role %s from another machine, you are %s; what an agent has that is there may be named", secrets[0], Admin, c.Role)
	}
	return nil
}

// MayOpen refuses an open agent or server to whoever has fewer rights than it
// would have.
func (c *Call) MayOpen(what, profile string) error {
	if profile != "open" || !c.Remote || c.Role.Includes(Admin) {
		return nil
	}
	return c.refuse("profile", "profile: an open %s reaches all that the engine's user reaches, which needs the role %s from another machine, you are %s", what, Admin, c.Role)
}

// MayServe refuses a server that reaches for the engine's machine from another
// one.
func (c *Call) MayServe(s tools.Server) error {
	if c.Remote && s.Any() {
		return c.refuse("read", "read, write and hide: what is on the machine of the data file can't be named from another one")
	}
	return c.MayOpen("server", s.Profile)
}

// refuse is the error of what may not be done from another machine.
func (c *Call) refuse(field, format string, args ...any) error {
	err := core.Errorf(core.Denied, format, args...).With("field", field)
	c.Refused(err)
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
