package secret

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
)

// maxGiven bounds the values that one process gets together, in bytes.
const maxGiven = 256 << 10

// Resolver makes the environment of a process of what its record says, right
// before it starts, and the mask for what it prints. An error names the
// variable.
type Resolver func(ctx context.Context, tenant string, env map[string]string) (map[string]string, *Mask, error)

// Resolve is the Resolver of these secrets. What looks like a credential and
// is given in clear is masked too, by the name of its variable.
func (s *Secrets) Resolve(ctx context.Context, tenant string, env map[string]string) (map[string]string, *Mask, error) {
	if err := CheckEnv(env); err != nil {
		return nil, nil, err
	}
	values, err := s.values(ctx, tenant, env)
	if err != nil {
		return nil, nil, err
	}
	return given(env, values)
}

// Plain is a Resolver where no secrets are kept.
func Plain(_ context.Context, _ string, env map[string]string) (map[string]string, *Mask, error) {
	if err := CheckEnv(env); err != nil {
		return nil, nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if name := Reference(env[key]); name != "" {
			return nil, nil, unknown(key, name)
		}
	}
	return given(env, nil)
}

// given puts values in the place of references.
func given(env, values map[string]string) (map[string]string, *Mask, error) {
	out, hide, total := make(map[string]string, len(env)), map[string]string{}, 0
	for key, text := range env {
		if name := Reference(text); name != "" {
			out[key], hide[name] = values[name], values[name]
			total += len(values[name])
			continue
		}
		if out[key] = literal(text); LooksSecret(key, out[key]) {
			hide[key] = out[key]
			total += len(out[key])
		}
	}
	if total > maxGiven {
		return nil, nil, core.Errorf(core.InvalidInput, "env: %d bytes of secrets; a process gets at most %d", total, maxGiven).With("field", "env")
	}
	if len(hide) == 0 {
		return out, nil, nil
	}
	return out, NewMask(hide), nil
}

// values opens the secrets that an environment refers to, by name.
func (s *Secrets) values(ctx context.Context, tenant string, env map[string]string) (map[string]string, error) {
	found, err := s.find(ctx, tenant, env)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	key, err := s.keys.get()
	if errors.Is(err, errNoKey) {
		return nil, core.Errorf(core.Unavailable, "the key file of the secrets, %s, is missing", s.keys.path)
	}
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(found))
	for name, one := range found {
		if values[name], err = open(key, one); err != nil {
			return nil, err
		}
	}
	s.out.add(tenant, values)
	return values, nil
}

// find reads what an environment refers to.
func (s *Secrets) find(ctx context.Context, tenant string, env map[string]string) (found map[string]*stored, err error) {
	if len(References(env)) == 0 {
		return nil, nil
	}
	found = map[string]*stored{}
	err = s.ledger.View(ctx, tenant, func(tx *audit.Tx) error {
		for _, key := range slices.Sorted(maps.Keys(env)) {
			name := Reference(env[key])
			if name == "" || found[name] != nil {
				continue
			}
			one, err := s.kind.Load(tx, name)
			if err == nil && one == nil {
				err = unknown(key, name)
			}
			if err != nil {
				return err
			}
			found[name] = one
		}
		return nil
	})
	return found, err
}

func unknown(key, name string) *core.Error {
	return wrong(key, "there is no secret "+name+"; set it with: secret set "+name+", or write @@ for a text that begins with @")
}

// Check reports a variable that refers to no secret, or to one that the caller
// can't give.
func (s *Secrets) Check(ctx context.Context, by core.Caller, env map[string]string) error {
	if err := CheckEnv(env); err != nil {
		return err
	}
	if _, err := s.find(ctx, by.Tenant, env); err != nil || by.Kind != core.Agent {
		return err
	}
	var own []string
	if s.held != nil {
		own = References(s.held(by.Tenant, by.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if name := Reference(env[key]); name != "" && !slices.Contains(own, name) {
			field := "env." + key
			return core.Errorf(core.Denied, "%s: agent %s was not given secret %s; it can only pass on what it has", field, by.Name, name).With("field", field)
		}
	}
	return nil
}

// Late is a Resolver for those who are made before the secrets are.
type Late struct{ secrets atomic.Pointer[Secrets] }

// Open connects it.
func (l *Late) Open(s *Secrets) { l.secrets.Store(s) }

// Resolve is a Resolver.
func (l *Late) Resolve(ctx context.Context, tenant string, env map[string]string) (map[string]string, *Mask, error) {
	if s := l.secrets.Load(); s != nil {
		return s.Resolve(ctx, tenant, env)
	}
	return nil, nil, core.Errorf(core.Unavailable, "the secrets are not open")
}

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
