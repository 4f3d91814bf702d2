package modelproxy

import (
	"net/http"
	"slices"
	"strings"

	"swarmdeck/engine/core"
)

// Bounds of what a request says it is part of.
const (
	maxSessions = 8
	maxSession  = 1024 // bytes of one
)

// sessionsOf is what a request says it is part of, the surest first: in a header
// that is named so, in OpenAI's prompt_cache_key or in Anthropic's metadata.
func sessionsOf(h http.Header, params core.Raw) (all []string) {
	add := func(s string) {
		if s != "" && len(s) <= maxSession && len(all) < maxSessions && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	var names []string
	for name := range h {
		plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if strings.HasSuffix(plain, "session-id") || strings.HasSuffix(plain, "conversation-id") || strings.HasSuffix(plain, "thread-id") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, s := range h[name] {
			add(strings.TrimSpace(s))
		}
	}
	var in struct {
		Cache    core.Raw `json:"prompt_cache_key"`
		Metadata struct {
			User    core.Raw `json:"user_id"`
			Session core.Raw `json:"session_id"`
		} `json:"metadata"`
	}
	if len(params) == 0 || core.DecodeStored(params, &in) != nil {
		return all
	}
	text := func(v core.Raw) (s string) {
		if v.Kind() == '"' {
			_ = core.DecodeStored(v, &s)
		}
		return s
	}
	add(text(in.Cache))
	add(text(in.Metadata.Session))
	user := text(in.Metadata.User) // user_…_session_ID, or JSON with a session_id
	if _, s, ok := strings.Cut(user, "_session_"); ok {
		add(s)
	} else if strings.HasPrefix(user, "{") {
		var of struct {
			Session core.Raw `json:"session_id"`
		}
		if core.DecodeStored(core.Raw(user), &of) == nil {
			add(text(of.Session))
		}
	}
	return all
}
