package command

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/tools"
)

// mayServe refuses a server that reaches for the engine's machine from another
// one.
func (c *call) mayServe(s tools.Server) error {
	call := c.forOp()
	if c.env.Abroad && s.Any() {
		err := core.Errorf(core.Denied, "read, write and hide: what is on the machine of the data file can't be named from another one").With("field", "read")
		call.Refused(err)
		return err
	}
	return call.MayOpen("server", s.Profile)
}
