package secret

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"swarmdeck/engine/core"
)

const nameRule = "a letter, then up to 63 of A-Z a-z 0-9 _"

var namePattern = core.Pattern(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// CheckName reports a name that no secret can have.
func CheckName(name string) error {
	if !namePattern().MatchString(name) {
		return core.Invalid("name", name, nameRule)
	}
	return nil
}

// Reference is the name of the secret that a variable's text stands for, ""
// for a text that stands for itself.
func Reference(text string) string {
	if name, ok := strings.CutPrefix(text, "@"); ok && namePattern().MatchString(name) {
		return name
	}
	return ""
}

// literal is a text that stands for itself without the escape: @@x is @x.
func literal(text string) string {
	if strings.HasPrefix(text, "@@") {
		return text[1:]
	}
	return text
}

// CheckEnv reports a text that looks like a reference and is none. It may be
// a password, so the error does not repeat it.
func CheckEnv(env map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(env)) {
		text := env[key]
		if strings.HasPrefix(text, "@") && !strings.HasPrefix(text, "@@") && Reference(text) == "" {
			return wrong(key, "begins with @ and names no secret; allowed: @NAME with "+nameRule+", or @@ before a text that begins with @")
		}
	}
	return nil
}

// References are the names of the secrets in an environment, sorted, each once.
func References(env map[string]string) (names []string) {
	for _, text := range env {
		if name := Reference(text); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wrong is an error about one variable.
func wrong(key, why string) *core.Error {
	field := "env." + key
	return core.Errorf(core.InvalidInput, "%s: %s", field, why).With("field", field)
}

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

// Hidden stands in the place of a text that is not shown.
const Hidden = "[hidden]"

// Env is the environment of a record. As JSON it shows references, and Hidden
// in the place of every other text; what stores it encodes the plain map.
type Env map[string]string

// Shown is the environment as it may be seen.
func (e Env) Shown() map[string]string {
	if e == nil {
		return nil
	}
	shown := make(map[string]string, len(e))
	for key, text := range e {
		if shown[key] = Hidden; Reference(text) != "" {
			shown[key] = text
		}
	}
	return shown
}

func (e Env) MarshalJSON() ([]byte, error) { return core.Encode(e.Shown()) }

// EnvOf is the environment that a task's input has, nil for none; what is
// wrong with it is its runner's to say.
func EnvOf(input core.Raw) Env {
	if !bytes.Contains(input, []byte(`env"`)) && !bytes.Contains(input, []byte(`\u`)) {
		return nil
	}
	var in struct {
		Env Env `json:"env"`
	}
	if core.DecodeStored(input, &in) != nil {
		return nil
	}
	return in.Env
}

// WithEnv is a task's input with another environment, or itself where it is
// no object.
func WithEnv(input core.Raw, env map[string]string) core.Raw {
	whole := map[string]core.Raw{}
	if core.DecodeStored(input, &whole) != nil {
		return input
	}
	whole["env"] = core.MustEncode(env)
	return core.MustEncode(whole)
}

// ShownInput is a task's input as it may be seen.
func ShownInput(input core.Raw) core.Raw {
	if env := EnvOf(input); len(env) > 0 {
		return WithEnv(input, env.Shown())
	}
	return input
}
