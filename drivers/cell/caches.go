package cell

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cache is a directory of the engine's user that a tool fills from the network,
// and where the tool looks for it below a HOME.
type cache struct {
	at    string
	plain bool // it is of use where nothing can be written to it
}

var caches = [...]cache{{"go/pkg/mod", true}, {".npm/_cacache", false}, {".cache/pip", true}, {".cache/uv", false}, {".cargo/registry", true}}

// cached are the caches of the engine's user that a worker has in its home. What
// it writes there is its own: the user's stays as it is.
func (s *Supervisor) cached(spec Spec) (all []tree) {
	home := cmp.Or(spec.Wall.Home, ownHome)
	mine, err := os.UserHomeDir()
	if named := spec.Env["HOME"]; err != nil || spec.Wall.Profile != Worker || named != "" && named != spec.Wall.Home || strings.ContainsAny(home, `,:\`) {
		return nil
	}
	hidden := s.hidden(spec.Dir, spec.Wall.Hide)
	for _, c := range caches {
		path := filepath.Join(mine, c.at)
		if c.at == caches[0].at { // which its user may have put elsewhere
			gopath, _, _ := strings.Cut(os.Getenv("GOPATH"), string(filepath.ListSeparator))
			path = cmp.Or(os.Getenv("GOMODCACHE"), filepath.Join(cmp.Or(gopath, filepath.Join(mine, "go")), "pkg/mod"))
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(real) || within(home, real) || slices.ContainsFunc(hidden, func(h string) bool { return within(real, h) || within(path, h) }) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			all = append(all, tree{path: real, as: filepath.Join(home, c.at), cache: true, plain: c.plain})
		}
	}
	return all
}
