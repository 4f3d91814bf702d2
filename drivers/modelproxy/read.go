package modelproxy

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// understand reads a request when its turn has come.
func (x *exchange) understand(data []byte) (fleet.ModelCall, error) {
	select {
	case x.l.p.reading <- struct{}{}:
	default:
		select {
		case x.l.p.reading <- struct{}{}:
		case <-x.r.Context().Done():
			return fleet.ModelCall{}, errors.New("the agent did not wait")
		}
	}
	defer func() { <-x.l.p.reading }()
	if items(data) > maxItems {
		return fleet.ModelCall{}, errCrowded
	}
	c, err := x.f.ask(x.path, data)
	if err == nil {
		blot(&c, x.secrets)
	}
	return c, err
}

var errCrowded = fmt.Errorf("more than %d values", maxItems)

// whole takes an answer that is no stream.
func (x *exchange) whole(encoding string) {
	data, why := x.out.plain(encoding)
	if why == "" {
		if err := x.read(data, x.f.whole); err != nil {
			why = err.Error()
		} else if x.a.silent() {
			why = "not understood"
		}
	}
	if why != "" {
		x.a.note = x.out.instead(why)
	}
}

// piece takes an event of a stream.
func (x *exchange) piece(name string, data []byte) {
	x.a.blind = false
	see := func(a *answer, data []byte) { x.f.event(a, name, data) }
	if len(data) <= small {
		see(x.a, data)
	} else if x.read(data, see) != nil {
		x.a.miss(len(data))
	}
}

// read takes an answer, or a piece of one, when its turn has come. The agent
// may have gone by then: the answer was given, and is counted. Of one that has
// too many values its end alone is understood.
func (x *exchange) read(data []byte, see func(*answer, []byte)) error {
	x.l.p.reading <- struct{}{}
	defer func() { <-x.l.p.reading }()
	if items(data) <= maxItems {
		see(x.a, data)
		return nil
	}
	var end ending
	if core.DecodeStored(data, &end) == nil {
		if data, err := core.Encode(end); err == nil && items(data) <= maxItems {
			see(x.a, data)
		}
	}
	return errCrowded
}

// ending is what the formats tell of an answer besides what was said.
type ending struct {
	Type       string   `json:"type,omitzero"`
	Status     core.Raw `json:"status,omitzero"`
	StopReason core.Raw `json:"stop_reason,omitzero"`
	Incomplete core.Raw `json:"incomplete_details,omitzero"`
	Usage      core.Raw `json:"usage,omitzero"`
	Metadata   core.Raw `json:"usageMetadata,omitzero"`
	Error      core.Raw `json:"error,omitzero"`
	Response   *ending  `json:"response,omitzero"`
}

// items is how many values JSON has at any depth, counted until there are too
// many, or it is none. The members of a list, as some answers are, are read one
// by one: of it, it is how many the largest has.
func items(data []byte) (most int) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for n := 0; most <= maxItems; most = max(most, n) {
		depth := dec.StackDepth()
		if kind, _ := dec.StackIndex(depth); depth == 1 && kind == '[' {
			n = 0
		}
		if depth > 0 && nameNext(dec) {
			if _, err := dec.ReadToken(); err != nil {
				return most
			}
		}
		t, err := dec.ReadToken()
		if err != nil {
			return most
		}
		if t.Kind() != '}' && t.Kind() != ']' {
			n++
		}
	}
	return most
}

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
