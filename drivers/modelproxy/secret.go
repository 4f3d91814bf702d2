package modelproxy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
)

// blank stands where a credential was.
const blank = "[credential]"

// shortest is the least that a credential has; less would blot out words.
const shortest = 8

// maxSecrets is how many credentials of a request are looked for.
const maxSecrets = 32

// secretsOf replaces the credentials of a request by the blank, longer ones
// first: its body or its answer may repeat them. It is nil when there are none.
func secretsOf(r *http.Request) *strings.Replacer {
	var all []string
	add := func(s string) {
		if s = strings.TrimSpace(s); len(s) >= shortest {
			all = append(all, s)
		}
	}
	for name, values := range r.Header {
		if !secretName(name) {
			continue
		}
		for _, v := range values {
			add(v)
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token)
			}
		}
	}
	for name, values := range r.URL.Query() {
		if secretName(name) || strings.EqualFold(name, "key") {
			for _, v := range values {
				add(v)
			}
		}
	}
	return replacer(all)
}

// replacer replaces texts in one pass, so that no blank is replaced again.
func replacer(secrets []string) *strings.Replacer {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	secrets = slices.Compact(secrets)
	if len(secrets) == 0 {
		return nil
	}
	var pairs []string
	for _, s := range secrets[:min(len(secrets), maxSecrets)] {
		pairs = append(pairs, s, blank)
	}
	return strings.NewReplacer(pairs...)
}

// secretName reports names of headers, of a query's members and of JSON's whose
// texts are credentials: tools bring some along for the servers that they are
// on. Numbers of tokens have plural names.
func secretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	switch name {
	case "authorization", "proxy-authorization", "cookie", "bearer", "apikey":
		return true
	case "prompt-cache-key": // names a conversation
		return false
	}
	return slices.ContainsFunc([]string{"token", "secret", "password", "-key"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// blot removes credentials from what is kept.
func blot(c *fleet.ModelCall, secrets *strings.Replacer) {
	c.Params, c.Tools = blotJSON(c.Params, secrets), blotJSON(c.Tools, secrets)
	c.Name, c.Finish = blotted(c.Name, secrets), blotted(c.Finish, secrets)
	if secrets == nil {
		return
	}
	for i := range c.Messages {
		for j := range c.Messages[i].Content {
			p := &c.Messages[i].Content[j]
			p.Text, p.URL = blotted(p.Text, secrets), blotted(p.URL, secrets)
			p.Input, p.Output = core.Raw(blotted(string(p.Input), secrets)), core.Raw(blotted(string(p.Output), secrets))
		}
	}
}

func blotted(s string, secrets *strings.Replacer) string {
	if secrets == nil {
		return s
	}
	return secrets.Replace(s)
}

// blotJSON removes credentials from JSON, and every text below the name of one.
// A schema's properties stay: they describe values and hold none.
func blotJSON(v core.Raw, secrets *strings.Replacer) core.Raw {
	if len(v) == 0 {
		return v
	}
	v = core.Raw(blotted(string(v), secrets))
	lower := bytes.ToLower(v)
	if !slices.ContainsFunc([]string{"auth", "key", "token", "secret", "password", "cookie", "bearer", `\u`}, func(s string) bool { return bytes.Contains(lower, []byte(s)) }) {
		return v
	}
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&out)
	at, secret := 0, false // the depth of the member that is passed through, and whether it is one
	for {
		depth := dec.StackDepth()
		name := depth > 0 && nameNext(dec)
		if depth < at || name && depth == at {
			at = 0
		}
		t, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return core.Raw(bytes.TrimSpace(out.Bytes()))
		}
		if err != nil {
			return nil // no JSON
		}
		switch {
		case at > 0:
			if secret && !name && t.Kind() == '"' {
				t = jsontext.String(blank)
			}
		case name && (t.String() == "properties" || secretName(t.String())):
			at, secret = depth, t.String() != "properties"
		}
		if enc.WriteToken(t) != nil {
			return nil
		}
	}
}

// nameNext reports whether the next token is the name of a member.
func nameNext(dec *jsontext.Decoder) bool {
	kind, n := dec.StackIndex(dec.StackDepth())
	return kind == '{' && n%2 == 0 && dec.PeekKind() == '"'
}
