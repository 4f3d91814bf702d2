package keeper

import (
	"path/filepath"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// CheckHosted reports why an agent's command can't run on a host, as far as that is the
// same for every runtime, and the profile of its processes there.
func CheckHosted(c fleet.Create) (cell.Profile, error) {
	if err := cell.CheckCommand("command", c.Command); err != nil {
		return "", err
	}
	if err := cell.CheckEnv(c.Env); err != nil {
		return "", err
	}
	if c.Dir != "" && (!filepath.IsAbs(c.Dir) || filepath.Clean(c.Dir) != c.Dir) {
		return "", core.Invalid("dir", c.Dir, "an absolute directory of the host, or none for one of the agent's own")
	}
	return cell.ParseProfile("profile", c.Profile)
}

// Linked is the line of an agent's log on the link to its host, which is there or is
// lost for a reason, while its process lives.
func Linked(host string, why error) fleet.Event {
	if why != nil {
		return fleet.Event{Type: "log", Level: "WARN", Text: why.Error() + "; its process goes on there until the lease is over"}
	}
	return fleet.Event{Type: "log", Level: "INFO", Text: "the link to host " + host + " is back"}
}
