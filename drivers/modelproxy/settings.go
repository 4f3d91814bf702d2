package modelproxy

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
)

// Upstreams are the addresses of an agent's model APIs, by the variable of its
// environment that names each.
type Upstreams map[string]*url.URL

// public are the variables whose API has a well-known address.
func public(name string) string {
	switch name {
	case "ANTHROPIC_BASE_URL":
		return "https://api.anthropic.com"
	case "OPENAI_BASE_URL", "OPENAI_API_BASE":
		return "https://api.openai.com/v1"
	case "GOOGLE_GEMINI_BASE_URL":
		return "https://generativelanguage.googleapis.com"
	}
	return ""
}

var variable = core.Pattern(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)

const (
	maxLines = 8
	field    = "options.record_models"
)

// Read finds the APIs behind an agent's option record_models: names of
// variables. Where its environment sets none, the address is the public one of
// ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OPENAI_API_BASE or
// GOOGLE_GEMINI_BASE_URL. Without the option (nil; an empty list is one) they
// are those of usual.
func Read(names []string, env map[string]string) (Upstreams, error) {
	if names == nil {
		names = usual(env)
	}
	if len(names) > maxLines {
		return nil, core.Invalid(field, len(names), "at most 8 variables")
	}
	to := Upstreams{}
	for _, name := range names {
		if !variable().MatchString(name) {
			return nil, core.Invalid(field, name, "names of variables, such as ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL")
		}
		if _, twice := to[name]; twice {
			return nil, core.Invalid(field, name, "each variable once")
		}
		address, set := env[name]
		if !set {
			address = public(name)
		}
		if address == "" {
			return nil, core.Invalid(field, name, "a variable that env sets to the address of the model's API, or ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OPENAI_API_BASE or GOOGLE_GEMINI_BASE_URL")
		}
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, core.Invalid("env."+name, address, "an http or https address without user, query and fragment, since it is recorded through a proxy")
		}
		to[name] = u
	}
	return to, nil
}

// usual are the addresses that an environment's credentials are for, where the
// usual client takes its address from there, so that a placeholder serves it as
// well. Codex, which has OPENAI_API_KEY too, takes it from its configuration: of
// OpenAI's only an address that is set counts.
func usual(env map[string]string) (names []string) {
	for _, address := range []string{"ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"} {
		_, set := env[address]
		held := slices.ContainsFunc(credentials(address), func(name string) bool { return env[name] != "" })
		if held && (set || !strings.HasPrefix(address, "OPENAI_")) {
			names = append(names, address)
		}
	}
	return names
}

// noProxy keeps requests to the loopback off the proxy that an agent's
// environment names for others.
func noProxy(vars, env map[string]string) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(env)), func(name string) bool {
		return strings.HasSuffix(strings.ToLower(name), "_proxy") && !strings.EqualFold(name, "no_proxy")
	}) {
		return
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		vars[name] = strings.TrimPrefix(env[name]+",127.0.0.1", ",")
	}
}

// Ports are those of this machine's loopback that an environment's variables
// lead to.
func Ports(vars map[string]string) (ports []int) {
	for _, address := range vars {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() != "127.0.0.1" {
			continue
		}
		if port, err := strconv.Atoi(u.Port()); err == nil && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}
