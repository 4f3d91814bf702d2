package secret

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/core"
)

// LooksSecret says whether a variable seems to hold a credential, by its name
// or by the text. Texts that are too short to be masked do not count.
func LooksSecret(key, text string) bool {
	if len(strings.TrimSpace(text)) < MinValue || Reference(text) != "" {
		return false
	}
	return shapes().MatchString(text) || secretName(key) && !address().MatchString(text)
}

// variable is one in a line of a shell.
var variable = core.Pattern(`\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\})`)

// CheckWords refuses a command with a credential in clear among its words, told
// by how it looks: everybody sees words, on cards and in the list of processes,
// and nothing can stand in their place. The error does not repeat it.
func CheckWords(field string, words []string) error {
	for i, word := range words {
		if LooksSecret("", variable().ReplaceAllString(word, "")) {
			return core.Errorf(core.InvalidInput, "%s: word %d looks like a credential in clear, which everybody could read; set a secret, give it by env as KEY=@NAME, and have the command read $KEY", field, i+1).With("field", field)
		}
	}
	return nil
}

// shapes are those of credentials that are told by how they look: of model
// providers, code hosts, clouds and chat services, private keys, signed tokens,
// and passwords within an address.
var shapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`sk-[A-Za-z0-9_-]{16,}`, `[rs]k_(?:live|test)_[A-Za-z0-9]{10,}`, `gh[oprsu]_[A-Za-z0-9]{20,}`, `github_pat_[A-Za-z0-9_]{20,}`,
		`glpat-[A-Za-z0-9_-]{16,}`, `A[KS]IA[0-9A-Z]{16}`, `AIza[A-Za-z0-9_-]{30,}`, `xox[abeoprs]-[A-Za-z0-9-]{8,}`, `hf_[A-Za-z0-9]{20,}`,
		`npm_[A-Za-z0-9]{30,}`, `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.`, `[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]{3,}@`,
	}, "|") + `)|-----BEGIN [A-Z0-9 ]*PRIVATE KEY|AGE-SECRET-KEY-1`)
})

// address is a path or an URL: the place of a credential, not one.
var address = core.Pattern(`^(?:~|\.{1,2})/|^/(?:bin|dev|etc|home|mnt|opt|proc|root|run|srv|tmp|usr|var|work)/|^[a-z][a-z0-9+.-]*://`)

// secretName says whether a variable is named like one that holds a credential.
// Words count whole or as the end of one, so that no KEYBOARD, MAX_TOKENS or
// AUTHOR is one.
func secretName(key string) bool {
	words := strings.FieldsFunc(strings.ToUpper(key), func(r rune) bool { return r == '_' })
	if n := len(words); n == 0 || slices.Contains([]string{"FILE", "PATH", "DIR", "ID", "NAME", "URL", "SOCK", "TTL"}, words[n-1]) {
		return false
	}
	if slices.ContainsFunc(words, func(word string) bool { return word == "PUBLIC" || word == "CACHE" }) {
		return false
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"KEY", "PASS", "PAT", "CREDENTIALS"}, word) ||
			slices.ContainsFunc([]string{"APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"}, func(end string) bool {
				return strings.HasSuffix(word, end)
			})
	})
}
