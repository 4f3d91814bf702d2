package coder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/expect"
)

func TestOptionsAreCheckedByField(t *testing.T) {
	good := `"url":"https://coder.example.com"`
	for _, c := range []struct{ options, field string }{
		{`{` + good + `}`, ""},
		{`{` + good + `,"token_env":"MY_TOKEN","interrupt":"ctrl-c","via":"task","app_slug":"my-app","template":"t","adopt":true}`, ""},
		{`{` + good + `,"token_file":"/run/token","parameters":{"size":"big"}}`, ""},
		{`{}`, "options.url"},
		{`{"url":"https://coder.example.com/sub"}`, "options.url"},
		{`{"url":"https://user:pass@coder.example.com"}`, "options.url"},
		{`{"url":"ftp://coder.example.com"}`, "options.url"},
		{`{"url":"coder.example.com"}`, "options.url"},
		{`{` + good + `,"token_env":"A","token_file":"/b"}`, "options.token_file"},
		{`{` + good + `,"token_env":"abc-def-0123"}`, "options.token_env"},
		{`{` + good + `,"token_file":"relative"}`, "options.token_file"},
		{`{` + good + `,"app_slug":"../x"}`, "options.app_slug"},
		{`{` + good + `,"interrupt":"x"}`, "options.interrupt"},
		{`{` + good + `,"via":"chat"}`, "options.via"},
		{`{` + good + `,"parameters":{"ai_prompt":"x"}}`, "options.parameters"},
		{`{` + good + `,"token":"abc"}`, "token"},
	} {
		err := check(fleet.Create{Name: "a", Options: core.Raw(c.options)})
		expect.Says(t, err, c.field, c.options)
		expect.True(t, err == nil || !strings.Contains(err.Error(), "pass@"), "the error names a password: %v", err)
	}
	for _, c := range []struct {
		c     fleet.Create
		field string
	}{
		{fleet.Create{Name: "-a"}, "name"},
		{fleet.Create{Name: "a--b"}, "name"},
		{fleet.Create{Name: "new"}, "name"},
		{fleet.Create{Name: "a", Command: []string{"x"}}, "command"},
		{fleet.Create{Name: "a", Env: map[string]string{"A": "b"}}, "env"},
	} {
		c.c.Options = core.Raw(`{` + good + `}`)
		err := check(c.c)
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), c.field+":"), "%+v: %v, want %s", c.c, err, c.field)
	}
}

func TestATokenComesFromTheEnvironmentOrAFile(t *testing.T) {
	t.Setenv("CODER_SESSION_TOKEN", "default")
	t.Setenv("CODER_TEST_OTHER", "other")
	t.Setenv("CODER_TEST_BAD", "with space")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		expect.No(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, c := range []struct {
		s          settings
		token, bad string
	}{
		{settings{}, "default", ""},
		{settings{TokenEnv: "CODER_TEST_OTHER"}, "other", ""},
		{settings{TokenFile: file("good", " abc\n")}, "abc", ""},
		{settings{TokenEnv: "CODER_TEST_NONE"}, "", "the variable CODER_TEST_NONE holds no token"},
		{settings{TokenEnv: "CODER_TEST_BAD"}, "", "can't be a token"},
		{settings{TokenFile: file("empty", "\n")}, "", "holds no token"},
		{settings{TokenFile: file("long", strings.Repeat("x", maxToken+1))}, "", "are no token"},
		{settings{TokenFile: filepath.Join(dir, "none")}, "", "can't be read"},
	} {
		got, err := c.s.token()
		if got != c.token || (err != nil) != (c.bad != "") || err != nil && (!strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "with space")) {
			t.Errorf("%+v: %q %v", c.s, got, err)
		}
	}
}
