package modelproxy

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// long is the least that a credential has to be looked for within other texts,
// in bytes: shorter ones, such as "ollama", may be words.
const long = 16

// credentials are the variables that hold what an API takes, by the variable
// that holds its address: those of its usual clients, or else those that are
// named like it.
func credentials(address string) (names []string) {
	switch address {
	case "ANTHROPIC_BASE_URL":
		return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
	case "OPENAI_BASE_URL", "OPENAI_API_BASE", "CODEX_BASE_URL":
		return []string{"OPENAI_API_KEY", "CODEX_API_KEY"}
	case "GOOGLE_GEMINI_BASE_URL":
		return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}
	}
	for _, end := range []string{"_BASE_URL", "_API_BASE", "_ENDPOINT", "_URL"} {
		if stem, ok := strings.CutSuffix(address, end); ok {
			for _, end := range []string{"_API_KEY", "_AUTH_TOKEN", "_KEY", "_TOKEN"} {
				names = append(names, stem+end)
			}
			return names
		}
	}
	return nil
}

// placeholder is a random text that clients take for a credential like that
// one. Nothing of the credential is in it but what all of its kind begin with.
func placeholder(value string) string {
	begin := ""
	for _, s := range []string{"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk-", "AIza"} {
		if strings.HasPrefix(value, s) {
			begin = s
			break
		}
	}
	text := rand.Text() + rand.Text()
	return begin + text[:min(max(len(value)-len(begin), len(text)/2), len(text))]
}

// grant is what a line puts in for the run that it belongs to.
type grant struct {
	values map[string]string // credentials by placeholder
	mask   *secret.Mask      // hides them in answers
}

// Conceal puts a placeholder in the place of each credential of these models in
// the environment of a process that is about to start. From then on each line
// puts its credentials in where a request shows their placeholders, until the
// next call: of an earlier process nothing is left then. Names are the variables
// that hold placeholders, sorted; the environment that it was given is left alone.
func (l *Lines) Conceal(env map[string]string) (out map[string]string, names []string) {
	if l == nil {
		return env, nil
	}
	by := map[string]string{} // placeholders by credential
	for address, line := range l.lines {
		g, hide := &grant{values: map[string]string{}}, map[string]string{}
		for _, name := range credentials(address) {
			value := strings.TrimSpace(env[name])
			if len(value) < secret.MinValue {
				continue
			}
			if by[value] == "" {
				by[value] = placeholder(value)
			}
			g.values[by[value]] = value
			if len(value) >= long {
				hide[name] = value
			}
		}
		g.mask = secret.NewMask(hide)
		line.grant.Store(g)
	}
	if len(by) == 0 {
		return env, nil
	}
	// Other variables may hold the same.
	values := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, value := range values {
		if len(value) >= long {
			pairs = append(pairs, value, by[value])
		}
	}
	within := strings.NewReplacer(pairs...)
	out = make(map[string]string, len(env))
	for name, text := range env {
		if out[name] = by[strings.TrimSpace(text)]; out[name] == "" {
			out[name] = within.Replace(text)
		}
		if out[name] != text {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return out, names
}

// put gives the request that has credentials in the place of placeholders. It
// reports false for one that brings another credential: who could use that here
// could take what the agent knows to an account of somebody else. A line without
// credentials passes on what comes, such as that of the agent's own login.
func (g *grant) put(r *http.Request) (*http.Request, bool) {
	if g == nil || len(g.values) == 0 {
		return r, true
	}
	r = r.Clone(r.Context())
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		for i, text := range r.Header[name] {
			scheme, token, two := strings.Cut(strings.TrimSpace(text), " ")
			if !two {
				scheme, token = "", scheme
			}
			value, ok := g.credential(token)
			if !ok && !strings.EqualFold(token, "Bearer") {
				return nil, false
			}
			if value != "" {
				r.Header[name][i] = strings.TrimSpace(scheme + " " + value)
			}
		}
	}
	var ok bool
	r.URL.RawQuery, ok = g.query(r.URL.RawQuery)
	return r, ok
}

// credential is what a placeholder stands for, "" for none.
func (g *grant) credential(token string) (value string, ok bool) {
	token = strings.TrimSpace(token)
	value, ok = g.values[token]
	return value, ok || token == ""
}

// query is put for a query, of which everything else stays as it is written.
func (g *grant) query(raw string) (string, bool) {
	var b strings.Builder
	for raw != "" {
		end := strings.IndexAny(raw, "&;")
		if end < 0 {
			end = len(raw)
		}
		name, text, _ := strings.Cut(raw[:end], "=")
		part := raw[:end]
		switch strings.ToLower(unescaped(name)) {
		case "key", "api_key", "api-key", "apikey", "access_token", "oauth_token":
			value, ok := g.credential(unescaped(text))
			if !ok {
				return "", false
			}
			if value != "" {
				part = name + "=" + url.QueryEscape(value)
			}
		}
		b.WriteString(part)
		if end < len(raw) {
			b.WriteByte(raw[end])
			end++
		}
		raw = raw[end:]
	}
	return b.String(), true
}

func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// hide takes the credentials out of an answer that repeats them. One that is
// encoded, although plain ones alone are asked for, is refused: it can't be read.
func (g *grant) hide(res *http.Response) error {
	if g == nil || g.mask == nil {
		return nil
	}
	if how := res.Header.Get("Content-Encoding"); how != "" && !strings.EqualFold(how, "identity") {
		return fmt.Errorf("it answered encoded as %s, in which a credential could be; allowed: identity", core.ClipTo(how, 40))
	}
	for _, texts := range res.Header {
		for i := range texts {
			texts[i] = g.mask.String(texts[i])
		}
	}
	if res.Body == nil || res.Body == http.NoBody || res.Request.Method == http.MethodHead {
		return nil
	}
	res.Body, res.ContentLength = pipe.Masked(res.Body, g.mask, func(ready *bytes.Buffer) io.Writer { return ready }), -1
	res.Header.Del("Content-Length")
	return nil
}
