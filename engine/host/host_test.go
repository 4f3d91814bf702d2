package host_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/host"
	"swarmdeck/expect"
)

func TestAnAddressIsNoOptionOfSSH(t *testing.T) {
	for text, want := range map[string]string{
		"ssh://x": "ssh://x", "ssh://a@x.example:22/": "ssh://a@x.example:22", "ssh://[::1]:2222": "ssh://[::1]:2222", "ssh://10.0.0.1": "ssh://10.0.0.1",
		"ssh://-oProxyCommand=id": "", "ssh://-x@y": "", "ssh://a:secret@x": "", "ssh://x:0": "", "ssh://x:99999": "", "ssh://x/path": "", "ssh://x?y": "",
		"x": "", "http://x": "", "ssh://": "", "ssh://a b": "", "ssh://x;id": "", "ssh://%2doX": "", "ssh://$(id)": "",
	} {
		a, err := host.ParseAddress(text)
		got := a.String()
		expect.True(t, (err == nil) == (want != "") && (err != nil || got == want), "%s: %q %v", text, got, err)
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("ssh://me@build.example:2222")
	f.Add("ssh://[fe80::1%25eth0]:22")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := host.ParseAddress(text)
		if err != nil {
			return
		}
		for _, part := range []string{a.User, a.Host, a.Port} {
			expect.Must(t, !strings.HasPrefix(part, "-") && !strings.ContainsAny(part, " \t\n'\"\\$`;&|<>()"), "%q: %+v", text, a)
		}
		again, err := host.ParseAddress(a.String())
		expect.Must(t, err == nil && again == a, "%q: %+v, then %+v %v", text, a, again, err)
	})
}
