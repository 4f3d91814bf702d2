package home

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/engine/core"
)

const maxLogin = 16 // paths

// Options are those of an agent about its HOME.
type Options struct {
	// Home is its HOME: a directory, or "" for one of its own that the engine
	// keeps beside the data file.
	Home string `json:"home,omitempty"`
	// Skeleton is a directory whose files are copied into its HOME before each
	// start, unless they are there.
	Skeleton string `json:"skeleton,omitempty"`
	// Login are files and directories below the home of the engine's user, such
	// as ~/.gemini, that are copied into its own HOME before each start, where
	// they are absent or older: its login, which no other agent gets.
	Login []string `json:"login,omitempty"`
}

// Check reports the first bad option.
func (o Options) Check() error {
	for _, p := range []struct{ field, path string }{{"home", o.Home}, {"skeleton", o.Skeleton}} {
		if p.path != "" && (!filepath.IsAbs(p.path) || strings.IndexByte(p.path, 0) >= 0) {
			return core.Invalid("options."+p.field, p.path, "an absolute path")
		}
	}
	if o.Skeleton != "" {
		if info, err := os.Stat(o.Skeleton); err != nil || !info.IsDir() {
			return core.Invalid("options.skeleton", o.Skeleton, "an existing directory")
		}
	}
	switch {
	case len(o.Login) == 0:
		return nil
	case len(o.Login) > maxLogin:
		return core.Invalid("options.login", len(o.Login), fmt.Sprintf("at most %d paths", maxLogin))
	case o.Home != "":
		return core.Invalid("options.login", strings.Join(o.Login, ","), "none together with home: it goes into a home of its own")
	}
	for _, path := range o.Login {
		if rel, ok := strings.CutPrefix(path, "~/"); !ok || rel == "." || !filepath.IsLocal(rel) || filepath.Clean(rel) != rel || strings.IndexByte(rel, 0) >= 0 {
			return core.Invalid("options.login", path, "a path that begins with ~/, such as ~/.gemini")
		}
	}
	return nil
}

// Given reports whether any of them is given.
func (o Options) Given() bool { return o.Home != "" || o.Skeleton != "" || len(o.Login) > 0 }

// Reach names those that are given, all of which reach for the engine's own
// machine.
func (o Options) Reach() (names []string) {
	for _, p := range []struct {
		name  string
		given bool
	}{{"home", o.Home != ""}, {"skeleton", o.Skeleton != ""}, {"login", len(o.Login) > 0}} {
		if p.given {
			names = append(names, p.name)
		}
	}
	return names
}

// WithoutHome refuses a login where the agent's environment names its HOME.
func (o Options) WithoutHome(named string) error {
	if len(o.Login) > 0 {
		return core.Invalid("env.HOME", named, "none together with the option login, which goes into a home of its own")
	}
	return nil
}
