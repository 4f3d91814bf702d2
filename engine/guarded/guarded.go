// Package guarded knows what a person's tools run because it lies in a directory:
// git's hooks, editors' tasks, settings of agents and package managers. It is one
// list, for the cards that name it.
package guarded

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed guarded.yaml
var source []byte

// Rule is some paths that mean one thing.
type Rule struct {
	When  string   `yaml:"when"` // as it follows "runs on your machine when"
	Paths []string `yaml:"paths"`
}

// Rules are all of them.
var Rules = sync.OnceValue(func() (all []Rule) {
	if err := yaml.UnmarshalWithOptions(source, &all, yaml.Strict()); err != nil {
		panic(fmt.Sprintf("guarded.yaml: %v", err)) // it is a part of this program
	}
	return all
})

// When tells on which occasion a file of a change runs on a person's machine, by its
// path with slashes; "" is on none.
func When(file string) string {
	names := strings.Split(strings.ToLower(file), "/")
	for _, r := range Rules() {
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
