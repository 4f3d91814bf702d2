package core

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that is compiled at its first use. Patterns
// of the whole program compiled at its start would be most of what our own
// packages do there, and few commands use more than some of them. A mistake in
// expr panics at the first use.
func Pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
