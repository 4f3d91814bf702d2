package judge

import (
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Containment says whether an effect can be felt by nothing but the caller's own tree,
// which keeps a state from before, its home and /tmp, and by hosts that are allowed
// already. Whoever asks vouches for it; the zero one holds nothing.
type Containment struct {
	Holds bool   `json:"holds,omitzero"`
	Why   string `json:"why,omitempty"` // it does not hold; "" also where nobody looked
}

// Contained is the containment with nothing in its way, or the one that does not hold for
// a reason.
func Contained(why string) Containment { return Containment{why == "", why} }

// Outside is a path that an action's arguments name, as far as their names tell, and that
// lies in none of some directories, the first of which it works in; "" for none.
func Outside(args core.Raw, dirs ...string) string {
	values, _ := core.Values(args)
	var s Subject
	s.pull("", values, nil, 0)
	for _, path := range s.Paths {
		full := path
		if !filepath.IsAbs(full) && !strings.HasPrefix(full, "~") {
			full = filepath.Join(dirs[0], full)
		}
		if full = filepath.Clean(full); !slices.ContainsFunc(dirs, func(dir string) bool {
			return dir != "" && (full == dir || strings.HasPrefix(full, dir+"/"))
		}) && !strings.HasPrefix(full, "~/") {
			return path
		}
	}
	return ""
}
