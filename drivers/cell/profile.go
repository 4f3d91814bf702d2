package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
)

// Profile is how much of the machine a run can reach.
type Profile string

const (
	// Worker reads the system, writes its directory, a home of its own and
	// /tmp, and has no network but the way out that it is given.
	Worker Profile = "worker"
	// Reader is a worker that can't write its directory and has no way out.
	Reader Profile = "reader"
	// Open reaches what the engine's own user reaches. It is still one cell:
	// it is paused and ended as a whole.
	Open Profile = "open"
)

// ParseProfile reads a profile's name; "" is Worker.
func ParseProfile(field, name string) (Profile, error) {
	switch p := Profile(name); p {
	case "":
		return Worker, nil
	case Worker, Reader, Open:
		return p, nil
	}
	return "", core.Invalid(field, name, "reader, worker or open")
}

// Wall is what a run can reach beside its directory. Paths are absolute.
type Wall struct {
	Profile Profile // "" is Worker
	// Home is a directory that is kept as the run's HOME; "" is an empty one
	// that goes with the run. Open runs have the engine's own unless it is given.
	Home string
	// Told gives it to read what the words of its command name, for commands
	// that an operator has written down.
	Told bool
	// Tmp is a directory that is its /tmp; "" is an empty one that goes with it.
	Tmp string
	// Read, Write and Hide are further places: to be read, to be written too,
	// and not to be there. Hide wins over what lies around it, and what is
	// named within it wins over it.
	Read, Write, Hide []string
	// Named gives a reader's user a name, in a list of users that holds nobody
	// else: some programs do not start without. Workers always have one.
	Named bool
	// Inspect gives a worker an authority of its own that it trusts, by which what
	// it says within TLS can be read on the way out.
	Inspect bool
	// Reach are ports of the engine's loopback that lead there from the cell's.
	Reach []int
}

// walled reports a run that does not reach everything.
func (w Wall) walled() bool { return w.Profile != Open }

// Places are the further places of a wall as an agent's options name them, and more of it:
// absolute paths, or such as begin with ~ for the home of the engine's user.
type Places struct {
	Read  []string `json:"read,omitempty"`  // what it may read besides
	Write []string `json:"write,omitempty"` // and write
	Hide  []string `json:"hide,omitempty"`  // what of all this is not there
	// Inspect has its requests decided by method and path. Only a worker has any.
	Inspect bool `json:"inspect,omitzero"`
}

const maxPlaces = 64

// Wall makes the places a wall. The error names the field that is wrong.
func (p Places) Wall(profile Profile) (w Wall, err error) {
	w.Profile, w.Inspect = profile, p.Inspect
	if err := CheckInspect("options.inspect", w.Profile, w.Inspect); err != nil {
		return w, err
	}
	for _, l := range []struct {
		field string
		from  []string
		to    *[]string
	}{{"read", p.Read, &w.Read}, {"write", p.Write, &w.Write}, {"hide", p.Hide, &w.Hide}} {
		if len(l.from) > maxPlaces {
			return w, core.Invalid("options."+l.field, len(l.from), "at most 64 places")
		}
		for _, path := range l.from {
			full := path
			if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
				home, err := os.UserHomeDir()
				if err != nil {
					return w, fmt.Errorf("options.%s: find the home of %q: %w", l.field, path, err)
				}
				full = filepath.Join(home, rest)
			}
			if !filepath.IsAbs(full) || filepath.Clean(full) == "/" || strings.IndexByte(full, 0) >= 0 {
				return w, core.Invalid("options."+l.field, path, "an absolute path, not /, or one that begins with ~/")
			}
			*l.to = append(*l.to, filepath.Clean(full))
		}
	}
	return w, nil
}

// CheckInspect reports a run that can't be looked into: a reader has no way out,
// and an open one takes its own.
func CheckInspect(field string, p Profile, inspect bool) error {
	if inspect && p != Worker && p != "" {
		return core.Invalid(field, true, "only of a worker, not of "+string(p))
	}
	return nil
}

// Any reports whether any place is named.
func (p Places) Any() bool { return len(p.Read)+len(p.Write)+len(p.Hide) > 0 }
