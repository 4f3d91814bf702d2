package secret

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// Taken is a credential that was given in clear and is kept as a secret.
type Taken struct {
	Key     string // the variable
	Name    string // the secret
	Changed bool   // whether it has a new value
}

// Take keeps what looks like a credential in an environment as secrets of its
// origin, such as agent:NAME, and gives the environment that refers to them.
// One whose value is kept already stays what it is. The environment that it
// was given is left alone.
func (s *Secrets) Take(ctx context.Context, by core.Caller, origin string, env map[string]string) (map[string]string, []Taken, error) {
	var taken []Taken
	out := env
	for _, key := range slices.Sorted(maps.Keys(env)) {
		value := literal(env[key])
		if !LooksSecret(key, env[key]) || len(value) > MaxValue || strings.IndexByte(value, 0) >= 0 {
			continue
		}
		one, err := s.take(ctx, by, origin, key, value)
		if err != nil {
			return nil, nil, err
		}
		if len(taken) == 0 {
			out = maps.Clone(env)
		}
		out[key] = "@" + one.Name
		taken = append(taken, one)
	}
	return out, taken, nil
}

// OfTasks is the origin of what tasks give: many have the same variable, each
// with a value of its own.
const OfTasks = "task"

// tries is how many names are tried for one variable.
const tries = 100

// take keeps one value under a name made of its origin and its variable. An
// agent has one secret for a variable; tasks have one for each value.
func (s *Secrets) take(ctx context.Context, by core.Caller, origin, key, value string) (Taken, error) {
	for n := 1; n <= tries; n++ {
		name := derived(origin, key, n)
		old, err := s.find(ctx, by.Tenant, map[string]string{key: "@" + name})
		switch one := old[name]; {
		case errors.Is(err, core.Kind(core.InvalidInput)): // free
		case err != nil:
			return Taken{}, err
		case one.Origin != origin:
			continue
		default:
			was, err := s.values(ctx, by.Tenant, map[string]string{key: "@" + name})
			if err == nil && was[name] == value {
				return Taken{Key: key, Name: name}, nil
			}
			if origin == OfTasks {
				continue
			}
		}
		if _, _, err := s.put(ctx, by, name, origin, []byte(value)); err != nil {
			return Taken{}, err
		}
		return Taken{Key: key, Name: name, Changed: true}, nil
	}
	return Taken{}, wrong(key, "too many values were given for it in clear; set a secret and give @NAME")
}

// derived is the name of a secret that was given in clear: agent:my-bot and
// API_KEY are my_bot_API_KEY.
func derived(origin, key string, n int) string {
	_, who, named := strings.Cut(origin, ":")
	if !named {
		who = origin
	}
	name := []byte(who + "_" + key)
	for i, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			name[i] = '_'
		}
	}
	if c := name[0] | 0x20; c < 'a' || c > 'z' {
		name = append([]byte("x"), name...)
	}
	end := ""
	if n > 1 {
		end = "_" + strconv.Itoa(n)
	}
	return string(name[:min(len(name), 64-len(end))]) + end
}
