package builtin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"swarmdeck/expect"
)

func TestARedirectLeavesNeitherItsHostNorEncryption(t *testing.T) {
	for _, c := range []struct {
		hops []string
		ok   bool
	}{
		{[]string{"http://a.example/", "http://a.example/x"}, true},
		{[]string{"http://a.example/", "https://a.example/"}, true},
		{[]string{"http://a.example/", "https://a.example/", "https://a.example/x"}, true},
		{[]string{"http://a.example/", "http://b.example/"}, false},
		{[]string{"http://a.example/", "http://a.example:81/"}, false},
		{[]string{"https://a.example/", "https://127.0.0.1/"}, false},
		{[]string{"https://a.example/", "http://a.example/"}, false},
		{[]string{"http://a.example/", "https://a.example/", "http://a.example/"}, false},
		{[]string{"https://a.example/", "file:///etc/passwd"}, false},
	} {
		var via []*http.Request
		var err error
		for _, hop := range c.hops {
			r := httptest.NewRequest(http.MethodGet, hop, nil)
			if len(via) > 0 && err == nil {
				err = follow(r, via)
			}
			via = append(via, r)
		}
		expect.Is(t, err == nil, c.ok, c.hops, err)
	}
}
