package modelproxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestTextsBelowTheNameOfACredentialAreBlotted(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a server's token":     {`{"authorization_token":"x","url":"u"}`, `{"authorization_token":"[credential]","url":"u"}`},
		"headers":              {`{"headers":{"X-Auth-Token":"x","Ocp-Apim-Subscription-Key":"y","Accept":"z"}}`, `{"headers":{"X-Auth-Token":"[credential]","Ocp-Apim-Subscription-Key":"[credential]","Accept":"z"}}`},
		"a list":               {`{"Authorization":["x","y"],"a":["z"]}`, `{"Authorization":["[credential]","[credential]"],"a":["z"]}`},
		"deep below":           {`[{"client_secret":{"a":[{"b":"x"}],"n":1}},"y"]`, `[{"client_secret":{"a":[{"b":"[credential]"}],"n":1}},"y"]`},
		"a name in escapes":    {`{"\u0074oken":"x"}`, `{"token":"[credential]"}`},
		"numbers of tokens":    {`{"max_tokens":5,"token":6,"stop_tokens":"x"}`, `{"max_tokens":5,"token":6,"stop_tokens":"x"}`},
		"a schema":             {`{"properties":{"token":{"type":"string"}},"token":"x"}`, `{"properties":{"token":{"type":"string"}},"token":"[credential]"}`},
		"properties in secret": {`{"secret":{"properties":{"a":"x"}}}`, `{"secret":{"properties":{"a":"[credential]"}}}`},
		"a cache's key":        {`{"prompt_cache_key":"x"}`, `{"prompt_cache_key":"x"}`},
	} {
		expect.Is(t, string(blotJSON([]byte(c.in), nil)), c.want, name)
	}
}

func TestBlanksAreNotBlottedAgain(t *testing.T) {
	query := url.Values{}
	for i := range 20 {
		query.Add("token", "edential"+blank[1:1+i%9]) // overlaps of the blank
		query.Add("token", "credential")
		query.Add("token", blank)
	}
	for i := range 1000 {
		query.Add("token", fmt.Sprintf("%08d", i))
	}
	r := expect.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, "/?"+query.Encode(), nil))(t)
	text := strings.Repeat("credential ", 100)
	got := blotted(text, secretsOf(r))
	expect.True(t, got == strings.Repeat(blank+" ", 100), "%d bytes: %.100s", len(got), got)
	expect.Is(t, blotted("long-secret-and-more long-secret", replacer([]string{"long-secret", "long-secret-and-more", "long-secret"})), blank+" "+blank)
}
