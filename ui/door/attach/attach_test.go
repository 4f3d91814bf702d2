package attach

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/command"
)

// TestAConnectionThatWasCutBeforeItShowedAnythingIsTriedAgain has an ssh whose
// server goes away while it asks about the host key.
func TestAConnectionThatWasCutBeforeItShowedAnythingIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		says        string
		tries, code int
	}{
		"cut":              {"Connection closed by 127.0.0.1 port 2222", 2, 0},
		"the key refused":  {"Host key verification failed.", 1, 255},
		"nobody listens":   {"ssh: connect to host deck port 22: Connection refused", 1, 255},
		"not let in":       {"alice@deck: Permission denied (publickey).", 1, 255},
		"the other's exit": {"", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			count := filepath.Join(dir, "count")
			script := "#!/bin/sh\necho x >>" + count + "\n"
			if c.says == "" {
				script += "exit 3\n"
			} else {
				script += "[ $(wc -l <" + count + ") -gt 1 ] && exit 0\necho '" + c.says + "' >&2\nexit 255\n"
			}
			expect.No(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o700))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			var said bytes.Buffer
			err := To(t.Context(), &command.Env{Stderr: &said}, command.Attach{Host: "deck", Program: "swarmdeck"})
			code := 0
			var exit *command.ExitError
			if errors.As(err, &exit) {
				code = exit.Code
			} else if err != nil {
				t.Fatal(err)
			}
			tried, _ := os.ReadFile(count)
			n := strings.Count(string(tried), "x")
			expect.True(t, n == c.tries && code == c.code, "%d tries, exit %d; want %d and %d\n%s", n, code, c.tries, c.code, said.String())
		})
	}
}
