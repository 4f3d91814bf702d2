package op

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/reach"
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
		return c.refuse("options."+secrets[0], "options.%s: where the engine's secrets go needs the rights of %s from another machine, you have those of %s; what an agent has that is there may be named", secrets[0], Admin, c.Role)
	}
	return nil
}

// MayOpen refuses an open agent or server to whoever has fewer rights than it
// would have.
func (c *Call) MayOpen(what, profile string) error {
	if profile != "open" || !c.Remote || c.Role.Includes(Admin) {
		return nil
	}
	return c.refuse("profile", "profile: an open %s reaches all that the engine's user reaches, which needs the rights of %s from another machine, you have those of %s", what, Admin, c.Role)
}

// MayServe refuses a server that reaches for the engine's machine from another
// one.
func (c *Call) MayServe(s tools.Server) error {
	if c.Remote && s.Any() {
		return c.refuse("read", "read, write and hide: what is on the machine of the data file can't be named from another one")
	}
	for _, word := range s.Command { // it gets what its command names, see cell.Wall
		if err := c.mayName(context.Background(), "command", reach.Command, []string{word}); err != nil {
			return err
		}
	}
	return c.MayOpen("server", s.Profile)
}

// mayName refuses what a caller does not reach who is no person of this machine.
func (c *Call) mayName(ctx context.Context, field string, use reach.Use, values []string) error {
	if c.By.Kind != core.Agent && !c.By.Far {
		return nil
	}
	for i, v := range values {
		_, after, _ := strings.Cut(v, "=")
		switch {
		case use == reach.Path:
			for _, word := range []string{"files:", "git:"} {
				v = strings.TrimPrefix(v, word)
			}
			if v == "" || v == "-" {
				continue
			}
		case use == reach.Command && (i == 0 && strings.Contains(v, "/") || filepath.IsAbs(v)): // its cell has what its words name
		case use == reach.Argv && i == 0 && strings.Contains(v, "/"):
		case use == reach.Env && strings.HasPrefix(v, "PATH="):
			v = after
		default:
			continue
		}
		if c.Engine == nil {
			return core.Errorf(core.Denied, "%s: %s can't be named without an engine", field, core.Clip(v)).With("field", field)
		}
		if err := c.Engine.Names(ctx, c.By, field, use, v); err != nil {
			return err
		}
	}
	return nil
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
