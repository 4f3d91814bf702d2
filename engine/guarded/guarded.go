// Package guarded knows what a person's tools run because it lies in a directory:
// git's hooks, editors' tasks, settings of agents and package managers. It is one
// list, for the cards that name it and for the cells that hold it; a project adds to it.
package guarded

import (
	_ "embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"swarmdeck/engine/core"
)

//go:embed guarded.yaml
var source []byte

// Rule is some paths that mean one thing.
type Rule struct {
	When  string   `yaml:"when"` // as it follows "runs on your machine when"
	Paths []string `yaml:"paths"`
	Named bool     `yaml:"named"` // agents may write it in shared directories
}

// Rules are all of them.
var Rules = sync.OnceValue(func() (all []Rule) {
	if err := yaml.UnmarshalWithOptions(source, &all, yaml.Strict()); err != nil {
		panic(fmt.Sprintf("guarded.yaml: %v", err)) // it is a part of this program
	}
	return all
})

// With are the rules of a project that guards more paths.
func With(more []string) []Rule {
	if len(more) == 0 {
		return Rules()
	}
	return append(slices.Clone(Rules()), Rule{When: "you work on the project, whose guard names it", Paths: more})
}

const maxPaths, maxPath = 50, 200 // that a project adds, and bytes of each

// Check reports the first path that a project can't add.
func Check(more []string) error {
	if len(more) > maxPaths {
		return core.Invalid("path", len(more), fmt.Sprintf("at most %d", maxPaths))
	}
	for _, p := range more {
		if _, err := path.Match(p, ""); err != nil || len(p) > maxPath || !fs.ValidPath(p) || p == "." || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
			return core.Invalid("path", core.Clip(p), fmt.Sprintf("a path below a directory, of 1-%d bytes, in which * ? and [] stand for parts of a name", maxPath))
		}
	}
	return nil
}

// When tells on which occasion a file of a change runs on a person's machine, by its
// path with slashes and what its project adds; "" is on none.
func When(file string, more []string) string {
	names := strings.Split(strings.ToLower(file), "/")
	for _, r := range With(more) {
		for _, p := range r.Paths {
			if covers(strings.Split(strings.ToLower(p), "/"), names) {
				return r.When
			}
		}
	}
	return ""
}

// covers reports whether a path begins anywhere in another.
func covers(pattern, names []string) bool {
	for ; len(names) >= len(pattern); names = names[1:] {
		all := true
		for i, p := range pattern {
			if ok, err := path.Match(p, names[i]); err != nil || !ok {
				all = false
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}
