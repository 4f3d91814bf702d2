// Package place tells on which machine lies what belongs to the records of a database
// and is not in it: the files of each machine are its own, and a tenant's engine may run
// on another one by now.
package place

import (
	"os"
	"strings"

	"swarmdeck/engine/core"
)

// Place names a machine's files of a database: HOST/WORD, with the name that the machine
// had when it came to the database. "" is beside a data file, which moves with them.
type Place string

// Host is the name of the machine.
func (p Place) Host() string {
	host, _, _ := strings.Cut(string(p), "/")
	return host
}

// Away is the error of something that lies in p, at a path, where it can't be reached from
// here; nil where it can. Beside a data file that came out of a database it is reached
// where its path is there.
func (p Place) Away(here Place, what, path string) error {
	if p == "" || p == here {
		return nil
	}
	if here == "" && path != "" {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
	}
	if path != "" {
		path = ", at " + path
	}
	return core.Errorf(core.Unavailable, "%s: on %s%s, and not reachable from here; it is again when an engine there has the tenant: start one on %s, then stop this one",
		what, p.Host(), path, p.Host()).With("host", p.Host())
}
