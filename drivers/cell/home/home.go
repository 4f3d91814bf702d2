// Package home keeps the directories in which agents have their HOME, between
// their runs: it makes one, fills it from a skeleton, and brings a copy of the
// engine's user's own login up to date. It follows no link that an agent has left
// there.
package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarmdeck/drivers/cell"
	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
)

// Home is the HOME of an agent.
type Home struct {
	Options
	Path string        // absolute
	Tmp  string        // its temporary files, of which nothing lasts; "" for none
	User *cell.User    // whom it belongs to; nil is the engine's own user
	Own  *safeopen.Own // files that are copied for no agent
}

// Furnish makes it and fills it.
func (h Home) Furnish() error {
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o711); err != nil {
		return fmt.Errorf("make the agent's home: %w", err)
	}
	if err := os.Mkdir(h.Path, 0o700); err == nil {
		h.give(h.Path, os.Lchown)
	} else if !os.IsExist(err) {
		return fmt.Errorf("make the agent's home: %w", err)
	}
	if h.Tmp != "" { // its commands share it
		if err := os.RemoveAll(h.Tmp); err != nil {
			return fmt.Errorf("empty the agent's temporary files: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(h.Tmp), 0o711); err != nil {
			return fmt.Errorf("make a place for the agent's temporary files: %w", err)
		}
		if err := os.Mkdir(h.Tmp, 0o700); err != nil {
			return fmt.Errorf("make a place for the agent's temporary files: %w", err)
		}
		h.give(h.Tmp, os.Lchown)
	}
	if h.Skeleton != "" {
		if err := h.copySkeleton(); err != nil {
			return fmt.Errorf("fill the agent's home from %s: %w", h.Skeleton, err)
		}
	}
	if err := h.copyLogin(); err != nil {
		return fmt.Errorf("copy the agent's login: %w", err)
	}
	return nil
}

// LoggedIn is the line of the agent's log on its login.
func (o Options) LoggedIn() (fleet.Event, bool) {
	return fleet.Event{Type: "log", Level: "INFO", Text: "its home has a copy of the login of the engine's user: " + strings.Join(o.Login, ", ")}, len(o.Login) > 0
}

// give makes the agent's user the owner; a failure shows when it needs that.
func (h Home) give(path string, own func(path string, uid, gid int) error) {
	if u := h.User; u != nil {
		_ = own(path, int(u.UID), int(u.GID))
	}
}

// Bounds of a skeleton: it holds settings, no data.
const (
	maxSkeletonFiles = 1000
	maxSkeletonBytes = 64 << 20
)

// copySkeleton fills a home in which the agent may have left links: none leads
// out of it, since the engine may have more rights than the agent.
func (h Home) copySkeleton() error {
	home, err := os.OpenRoot(h.Path)
	if err != nil {
		return err
	}
	defer home.Close()
	return h.copyTree(home, h.Skeleton, ".", false)
}

// copyTree copies what is at a path to a place in a home: regular files that
// are not there, or with renew are older there.
func (h Home) copyTree(home *os.Root, from, to string, renew bool) error {
	files, bytes := 0, int64(0)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if rel = filepath.Join(to, rel); err != nil || rel == "." {
			return err
		}
		if d.IsDir() {
			if err := home.Mkdir(rel, 0o700); err == nil {
				h.give(rel, home.Lchown)
			} else if !os.IsExist(err) {
				return err
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		files++
		bytes += info.Size()
		if files > maxSkeletonFiles || bytes > maxSkeletonBytes {
			return fmt.Errorf("more than %d files or %d MiB", maxSkeletonFiles, maxSkeletonBytes>>20)
		}
		if there, err := home.Lstat(rel); renew && err == nil && there.Mode().IsRegular() && there.ModTime().Before(info.ModTime()) {
			if err := home.Remove(rel); err != nil {
				return err
			}
		}
		return h.copyFile(home, path, rel, info.Mode().Perm()|0o600)
	})
}

// copyFile copies one file unless it is there.
func (h Home) copyFile(home *os.Root, from, to string, perm fs.FileMode) error {
	in, err := h.Own.File(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := home.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = home.Remove(to) // a half file would count as there
		return err
	}
	h.give(to, home.Lchown)
	return nil
}

// Logins are where the logins that go into the home come from; none where the engine's user
// has no home.
func (h *Home) Logins() (all []string) {
	mine, err := os.UserHomeDir()
	if h == nil || err != nil {
		return nil
	}
	for _, path := range h.Login {
		all = append(all, filepath.Join(mine, strings.TrimPrefix(path, "~/")))
	}
	return all
}

// copyLogin brings the login in the agent's home up to date. What the engine's
// user does not have is left out; the agent says what it misses.
func (h Home) copyLogin() error {
	if len(h.Login) == 0 {
		return nil
	}
	home, err := os.OpenRoot(h.Path)
	if err != nil {
		return err
	}
	defer home.Close()
	for i, from := range h.Logins() {
		rel := strings.TrimPrefix(h.Login[i], "~/")
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := home.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
			return err
		}
		for dir := filepath.Dir(rel); dir != "."; dir = filepath.Dir(dir) {
			h.give(dir, home.Lchown)
		}
		if err := h.copyTree(home, from, rel, true); err != nil {
			return err
		}
	}
	return nil
}

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
