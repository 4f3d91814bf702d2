package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func (w *walk) secrets() {
	w.no(os.WriteFile(filepath.Join(w.dir, "value"), []byte("a-long-enough-value\n"), 0o600))
	made := w.do("secret set CI --from-file value")
	expect.Row(w.t, made, "name", "CI", "created_by", "alice")
	w.do("agent create keeper --project tools --env CI=@CI -- true")
	w.do("secret list")
	w.text("secret list", "CI", "alice", "keeper")
	all := w.objects("secret list --match ci")
	expect.True(w.t, len(all) == 1 && fmt.Sprint(all[0]["agents"]) == "[keeper]", "secret list: %v", all)
	expect.Row(w.t, w.do("secret delete CI"), "name", "CI")
	w.do("agent delete keeper --yes")
}

func TestSecretsAreRefusedForTheRightReason(t *testing.T) {
	d := newDeck(t)
	d.no(os.WriteFile(filepath.Join(d.dir, "short"), []byte("12345\n"), 0o600))
	d.no(os.WriteFile(filepath.Join(d.dir, "long"), []byte(strings.Repeat("x", 64<<10+1)), 0o600))
	d.line("tenant create t_test")
	for _, c := range []struct {
		line, field, want string
		exit              int
	}{
		{"secret set 1A --from-file short", "name", "a letter", 2},
		{"secret set A --from-file short", "value", "6 bytes or more", 2},
		{"secret set A --from-file long", "value", "64 KiB", 2},
		{"secret set A --from-file none", "from-file", "no such file", 1},
		{"secret delete A", "", "A", 1},
		{"agent create a --project p --env X=@NONE -- true", "env.X", "no secret NONE", 2},
		{"agent create a --project p --env X=@no-name -- true", "env.X", "@@", 2},
		{`task dispatch --kind exec.run --input '{"argv":["true"],"env":{"X":"@NONE"}}'`, "env.X", "no secret NONE", 2},
		{"mcp add s --env X=@NONE -- true", "env.X", "no secret NONE", 2},
		{"agent create a --project p -- true --key sk-0123456789abcdef0123", "command", "word 3 looks like a credential", 2},
		{`task dispatch --kind exec.run --input '{"argv":["curl","https://me:geheim@h.example/"]}'`, "argv", "word 2 looks like a credential", 2},
		{"mcp add s -- true ghp_0123456789abcdefghijkl", "command", "word 2 looks like a credential", 2},
	} {
		_, message, details := d.fails(c.exit, c.line)
		expect.True(t, strings.Contains(message, c.want) && (c.field == "" || details["field"] == c.field), "%s: %s %v", c.line, message, details)
	}
	expect.Fails(t, expect.Fault(os.Stat(d.data+".secrets.key")), "a key was made for nothing")
}
