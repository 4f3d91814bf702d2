package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Places are files and directories beside the one that a process works in:
// absolute paths, or such as begin with ~ for the home of the engine's user.
type Places struct {
	Read  []string `json:"read,omitempty"`  // what it may read besides
	Write []string `json:"write,omitempty"` // and write
	Hide  []string `json:"hide,omitempty"`  // what of all this is not there
	Guard []string `json:"-"`               // names at the top of shared directories that stay as they are, beside those of package guarded
}

// Bounds of places.
const (
	maxPlaces = 64   // in one list
	maxPath   = 2048 // bytes
)

// Any reports whether any place is named.
func (p Places) Any() bool { return len(p.Read)+len(p.Write)+len(p.Hide) > 0 }

// OfOptions are the places that an agent's options name; none where these make
// no sense.
func OfOptions(options core.Raw) (p Places) {
	if len(options) == 0 || core.DecodeStored(options, &p) != nil {
		return Places{}
	}
	return p
}

// With are the places together with others.
func (p Places) With(o Places) Places {
	return Places{Read: slices.Concat(p.Read, o.Read), Write: slices.Concat(p.Write, o.Write), Hide: slices.Concat(p.Hide, o.Hide)}
}

// Full are the places by absolute paths. The error names the list that is
// wrong, below a prefix such as "options.".
func (p Places) Full(prefix string) (full Places, err error) {
	for _, l := range []struct {
		field string
		from  []string
		to    *[]string
	}{{"read", p.Read, &full.Read}, {"write", p.Write, &full.Write}, {"hide", p.Hide, &full.Hide}} {
		if len(l.from) > maxPlaces {
			return full, core.Invalid(prefix+l.field, len(l.from), fmt.Sprintf("at most %d places", maxPlaces))
		}
		for _, path := range l.from {
			one, err := fullPath(prefix+l.field, path)
			if err != nil {
				return full, err
			}
			*l.to = append(*l.to, one)
		}
	}
	return full, nil
}

func fullPath(field, path string) (string, error) {
	full := path
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%s: find the home of %q: %w", field, path, err)
		}
		full = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(full) || filepath.Clean(full) == "/" || strings.IndexByte(full, 0) >= 0 || len(full) > maxPath {
		return "", core.Invalid(field, path, fmt.Sprintf("an absolute path, not /, or one that begins with ~/; at most %d bytes", maxPath))
	}
	return filepath.Clean(full), nil
}
