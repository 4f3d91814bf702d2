package tree

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestARemoteIsAnotherMachineByHTTPSOrSSHOrADirectory(t *testing.T) {
	for url, want := range map[string]string{
		"https://github.com/acme/web.git":         "https, host github.com, path /acme/web.git",
		"https://olga@git.example.org:8443/web":   "https, host olga@git.example.org:8443, path /web",
		"https://[::1]:8443/web":                  "https, host [::1]:8443, path /web",
		"ssh://git@git.example.org:2222/srv/w":    "ssh, host git@git.example.org:2222, path /srv/w",
		"git@github.com:acme/web.git":             "ssh, host git@github.com, path acme/web.git",
		"forge:web.git":                           "ssh, host forge, path web.git",
		"git@git.example.org:~olga/web.git":       "ssh, host git@git.example.org, path ~olga/web.git",
		"/srv/git/web.git":                        "file, host this machine, path /srv/git/web.git",
		"file:///srv/git/web.git":                 "file, host this machine, path /srv/git/web.git",
		"ssh://git.example.org/~/web%20pages.git": "ssh, host git.example.org, path /~/web%20pages.git",
	} {
		at, err := ReadRemote(url)
		expect.True(t, err == nil && at.String() == want, "%s: %q %v", url, at, err)
	}
	for url, what := range map[string]string{
		"": "a path", "/srv/git/../web.git": "this path", "/srv/-o web": "printable", "/srv/git;id": "this path", "/": "this path", "file://host/srv/web": "file:", "file:///srv/": "this path", "../web.git": "a path", "./a:b": "a path", "web": "a path", "~/web.git": "a path", "dir/x:y": "a path",
		"file:srv/web": "a path", "FILE:///srv/web": "file:", "http://github.com/a/b": "http:", "git://github.com/a/b": "git:", "ftp://x/y": "ftp:", "ssh+git://x/y": "ssh+git:",
		"ext::sh -c id": "ext::, which runs a helper", "fd::3": "fd::, which", "ext::https://github.com/a": "helper", "transport::https://x/y": "transport::",
		"https://olga:pw@github.com/a/b": "password", "https://github.com": "without a path", "https://github.com/": "without a path", "https://github.com/a?b": "without a path",
		"https://github.com/a#b": "without a path", "-oProxyCommand=id:x": "this host", "git@-oProxyCommand=id:x": "this host", "ssh://-oProxyCommand=id/x": "this host",
		"ssh://-o@host/x": "this user", "host:-x": "this path", "https:///x": "this host", "https://github.com/a/../b": "this path", "host:a b": "printable", "host:a\nb": "printable",
		"host:$(id)": "this path", "a@b@host:x": "this host", "ssh://host/a'b": "this path", "https://a b/c": "printable", "https://github.com/\u202ea": "printable", "https://[::1/c": "no URL",
		"https://" + strings.Repeat("a", 1000): "1000",
	} {
		at, err := ReadRemote(url)
		expect.True(t, err != nil && (strings.Contains(err.Error(), "not "+what) || strings.Contains(err.Error(), what)), "%q: %q %v", url, at, err)
	}
}
