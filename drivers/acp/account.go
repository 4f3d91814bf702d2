package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

const maxLogin = 16 // paths

// checkLogin refuses a login that is not below a home, or would not be its
// alone.
func (s settings) checkLogin() error {
	switch {
	case len(s.Login) == 0:
		return nil
	case len(s.Login) > maxLogin:
		return core.Invalid("options.login", len(s.Login), fmt.Sprintf("at most %d paths", maxLogin))
	case s.Shared:
		return core.Invalid("options.login", strings.Join(s.Login, ","), "none together with shared: a login is given to one agent")
	case s.Home != "":
		return core.Invalid("options.login", strings.Join(s.Login, ","), "none together with home: it goes into a home of its own")
	}
	for _, path := range s.Login {
		if rel, ok := strings.CutPrefix(path, "~/"); !ok || rel == "." || !filepath.IsLocal(rel) || filepath.Clean(rel) != rel || strings.IndexByte(rel, 0) >= 0 {
			return core.Invalid("options.login", path, "a path that begins with ~/, such as ~/.gemini")
		}
	}
	return nil
}

// copyLogin brings the login in the agent's home up to date. What the engine's
// user does not have is left out; the agent says what it misses.
func (p place) copyLogin() error {
	if len(p.Login) == 0 {
		return nil
	}
	mine, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	home, err := os.OpenRoot(p.home)
	if err != nil {
		return err
	}
	defer home.Close()
	for _, path := range p.Login {
		rel := strings.TrimPrefix(path, "~/")
		from := filepath.Join(mine, rel)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := home.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
			return err
		}
		for dir := filepath.Dir(rel); dir != "."; dir = filepath.Dir(dir) {
			p.give(dir, home.Lchown)
		}
		if err := p.copyTree(home, from, rel, true); err != nil {
			return err
		}
	}
	return nil
}

// loggedIn is the line of the agent's log on its login.
func (p place) loggedIn() (fleet.Event, bool) {
	return fleet.Event{Type: "log", Level: "INFO", Text: "its home has a copy of the login of the engine's user: " + strings.Join(p.Login, ", ")}, len(p.Login) > 0
}
