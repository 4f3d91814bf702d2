package cluster

import (
	"path"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// MaxPatterns is how many patterns of tenants an engine may prefer.
const MaxPatterns = 32

var pattern = core.Pattern(`^[a-z0-9_*?-]{1,64}$`)

// CheckPatterns is an error about the first of an engine's patterns that is none, named
// after a field.
func CheckPatterns(field string, all []string) error {
	if len(all) > MaxPatterns {
		return core.Invalid(field, strings.Join(all, " "), "at most 32 patterns")
	}
	for _, p := range all {
		if !pattern().MatchString(p) {
			return core.Invalid(field, p, "a tenant such as t_acme, in which * stands for any characters and ? for one")
		}
	}
	return nil
}

// Matches says whether a tenant is among those of some patterns. What is no pattern
// matches nothing.
func Matches(patterns []string, tenant string) bool {
	return slices.ContainsFunc(patterns[:min(len(patterns), MaxPatterns)], func(p string) bool {
		is, err := path.Match(p, tenant)
		return is && err == nil
	})
}
