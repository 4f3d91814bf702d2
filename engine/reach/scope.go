// Package reach says what a caller may name: a path, a directory, a repository.
// An agent names its own tree, with what rules add; an operator of another machine
// the directories of the projects that are registered here; a person of this machine
// what that user may open. It is asked where work is given, and again where it is
// begun, by who asked for it.
package reach

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/safeopen"
)

// Use is what a parameter names.
type Use string

// The uses. Where a record says what is allowed, such as a project its remotes, its
// package holds the value to that.
const (
	Path     Use = "path"        // of the engine's machine: see Scope.Named
	Command  Use = "command"     // which runs in a cell, with its program and the files that its words name: see Scope.Runs
	Argv     Use = "argv"        // of a task, whose program alone its cell has
	Env      Use = "environment" // of a command, NAME=VALUE, which says where its programs are
	Variable Use = "variable"    // of the engine's own environment: admins name it
	Address  Use = "address"     // a host or a remote, as its record allows
	Inside   Use = "within"      // a path of a tree, a record or a request, which its owner opens
)

// Scope is what one caller may name. The zero Scope may name nothing.
type Scope struct {
	Free bool   // what the engine's user may open: a person of this machine
	Who  string // for messages
	// Own are directories that a person gave to the caller alone; work that names no
	// directory is done in the first. What is given besides is More.
	Own, More []string
	// Place is where the caller's work gets directories of its own, the caller's alone.
	Place string
	Keep  *safeopen.Own // the engine's own files
}

// Apart is the place of a caller's own directories, below that of all of a tenant.
func Apart(base string, by core.Caller) string {
	sum := sha256.Sum256([]byte(string(by.Kind) + " " + by.Name))
	return filepath.Join(base, by.Tenant, hex.EncodeToString(sum[:8]))
}

// Dir settles the directory that a caller names for work, "" for none: absolute, and
// for who is not free without links.
func (s Scope) Dir(field, path string) (string, error) {
	switch {
	case s.Free:
		return path, nil
	case path == "" && len(s.Own) > 0:
		path = s.Own[0]
	case path == "":
		path = filepath.Join(s.Place, core.NewTrace(nil))
	}
	return s.Named(field, path)
}

// Named settles a path that a caller names, which need not be there.
func (s Scope) Named(field, path string) (string, error) {
	if s.Free {
		return path, nil
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(s.Start(), full)
	}
	real, err := resolved(filepath.Clean(full))
	if err != nil || strings.IndexByte(path, 0) >= 0 {
		return "", s.refused(field, path, "can't be followed to where it leads")
	}
	if root := rootOf(real, s.Place); root != "" && real != root {
		return real, nil
	}
	root := rootOf(real, s.Own...)
	switch {
	case root != "" && real == root: // a person put them there
		return real, nil
	case root == "" && rootOf(real, s.More...) == "":
		return "", s.refused(field, path, "lies outside of what "+s.Who+" may name")
	}
	return real, s.Never(field, path, real, root)
}

// Root is the directory of the caller's that a path lies in which Named has settled.
func (s Scope) Root(real string) string {
	return rootOf(real, slices.Concat([]string{s.Place}, s.Own, s.More)...)
}

// rootOf is the first of some directories that a real path lies in, "" for none.
func rootOf(real string, dirs ...string) string {
	for _, dir := range dirs {
		if root, err := resolved(dir); dir != "" && err == nil && Within(real, root) {
			return root
		}
	}
	return ""
}

// Runs refuses what a command would bring into its cell: the program, which a path may
// lead to from its directory, "" for where the caller works, and the directories of the
// PATH that it is given. What the system has, or the engine's own PATH, needs no leave.
func (s Scope) Runs(field, dir, program, path string) error {
	if s.Free {
		return nil
	}
	dir = cmp.Or(dir, s.Start())
	places := filepath.SplitList(path)
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		places = append(places, program)
	}
	engines := filepath.SplitList(os.Getenv("PATH"))
	for _, place := range places {
		real, err := resolved(filepath.Clean(place))
		switch root, _ := resolved(dir); {
		case !filepath.IsAbs(place), slices.Contains(engines, place), slices.Contains(engines, filepath.Dir(place)):
		case err == nil && (Within(real, "/usr") || root != "" && Within(real, root)):
		default:
			if _, err := s.Named(field, place); err != nil {
				return err
			}
		}
	}
	return nil
}

// Start is where relative paths start from.
func (s Scope) Start() string {
	if len(s.Own) > 0 {
		return s.Own[0]
	}
	return s.Place
}

// Never refuses what no work is done in that an agent or another machine asked for,
// whoever named it. It is a real path; own is the directory of theirs that it lies in,
// "" for none.
func (s Scope) Never(field, path, real, own string) error {
	if s.Free {
		return nil
	}
	for _, h := range Hidden(real) {
		if Within(real, h) && (own == "" || !Within(own, h)) {
			return s.refused(field, path, "is hidden from all that runs here")
		}
	}
	for _, home := range slices.Concat(homes(real), []string{"/root", "/home", "/"}) {
		if home, err := resolved(home); err == nil && Within(home, real) {
			return s.refused(field, path, "is a home, or holds one")
		}
	}
	if filepath.Dir(real) == "/home" {
		return s.refused(field, path, "is a home")
	}
	for _, dir := range system {
		if own == "" && (Within(real, dir) || Within(dir, real)) {
			return s.refused(field, path, "is the system's")
		}
	}
	if s.Keep.CheckWork(real) != nil {
		return s.refused(field, path, "is one of the engine's own files")
	}
	return nil
}

// system are directories that are no one's project.
var system = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/boot", "/dev", "/proc", "/sys", "/run"}

// refused is the error of a path that is not the caller's to name.
func (s Scope) refused(field, path, why string) error {
	allowed := "nothing"
	if all := slices.Concat(s.Own, s.More); len(all) > 0 {
		allowed = strings.Join(all[:min(len(all), 5)], ", ")
	}
	if field == "dir" && len(s.Own) == 0 {
		allowed += "; or none, for a directory of its own"
	}
	return core.Errorf(core.Denied, "%s: %s %s; allowed: %s", field, core.Clip(path), why, allowed).With("field", field).With("value", core.Clip(path))
}

// Within reports a path that is another or lies below it.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// resolved is a path without links, as far as it is there.
func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == "/" {
		return real, err
	}
	if _, err := os.Lstat(path); err == nil { // a link to nothing: what will be there is not known
		return "", fs.ErrNotExist
	}
	dir, err := resolved(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// Program finds a program in the directories of a list as PATH is; "" for none. A name
// with a slash is a path, and in no list.
func Program(name, path string) string {
	if name == "" || strings.Contains(name, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, name)
		if info, err := os.Stat(at); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}
