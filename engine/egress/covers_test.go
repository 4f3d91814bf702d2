package egress

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// FuzzCovers holds what rules say of a path against what a server makes of it
// that decodes it and follows its dots.
func FuzzCovers(f *testing.F) {
	for _, s := range []string{"/v1/x", "/v1/../x", "/v1/%2e%2e/x", "/x/..%2fv1/y", "//v1/x", "/v1%2Fx", "/%76%31/x", "/v1/..;/x", "/a\\..\\v1\\x", "/v1/%252e%252e/x"} {
		f.Add(s)
	}
	allow, deny := Rule{Effect: Allow, Path: "/v1/*"}, Rule{Effect: Deny, Path: "/v1/*"}
	f.Fuzz(func(t *testing.T, sent string) {
		want, err := NewRequest(Target{Host: "api.example", Port: 443}, "PUT", sent, "")
		if err != nil || want.Method != "PUT" {
			return
		}
		plain, err := url.PathUnescape(sent)
		if err != nil {
			return // no server reads it
		}
		for range 2 { // once, and by some twice
			served := path.Clean(plain)
			if slashes := path.Clean(strings.ReplaceAll(plain, `\`, "/")); allow.covers(&want) && (!strings.HasPrefix(served, "/v1") || !strings.HasPrefix(slashes, "/v1")) {
				t.Errorf("%q is allowed and served as %q", sent, served)
			}
			if strings.HasPrefix(served, "/v1/") && !deny.covers(&want) {
				t.Errorf("%q is not denied and served as %q", sent, served)
			}
			again, err := url.PathUnescape(plain)
			if err != nil {
				return
			}
			plain = again
		}
	})
}
