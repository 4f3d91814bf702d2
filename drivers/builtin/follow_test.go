package builtin

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestARedirectNeverLeavesEncryption(t *testing.T) {
	for _, c := range []struct {
		hops []string
		ok   bool
	}{
		{[]string{"http://a.example/", "http://b.example/"}, true},
		{[]string{"https://a.example/", "https://b.example/"}, true},
		{[]string{"http://a.example/", "https://a.example/"}, true},
		{[]string{"https://a.example/", "http://a.example/"}, false},
		{[]string{"http://a.example/", "https://a.example/", "http://a.example/"}, false},
		{[]string{"http://a.example/", "https://a.example/", "https://b.example/"}, true},
		{[]string{"https://a.example/", "file:///etc/passwd"}, false},
	} {
		p := &httpParams{Headers: map[string]string{"X-Key": "secret"}}
		var via []*http.Request
		var err error
		for _, hop := range c.hops {
			r := httptest.NewRequest(http.MethodGet, hop, nil)
			r.Header.Set("X-Key", "secret")
			if len(via) > 0 && err == nil {
				err = p.follow(r, via)
				if told := r.Header.Get("X-Key") != ""; err == nil && told != (r.URL.Host == via[0].URL.Host) {
					t.Errorf("%v: %s is told the header: %v", c.hops, hop, told)
				}
			}
			via = append(via, r)
		}
		if (err == nil) != c.ok {
			t.Errorf("%v: %v", c.hops, err)
		}
	}
}
