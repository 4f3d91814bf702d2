package term_test

import (
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

func TestLinksAreForTerminalsThatAreKnownToOpenThem(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm-256color"}, false},
		{map[string]string{"TERM": "xterm-kitty"}, true},
		{map[string]string{"TERM": "xterm-ghostty"}, true},
		{map[string]string{"TERM": "foot"}, true},
		{map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, true},
		{map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, false},
		{map[string]string{"TERM": "xterm-256color", "VTE_VERSION": "7200"}, true},
		{map[string]string{"TERM": "xterm-256color", "VTE_VERSION": "4002"}, false},
		{map[string]string{"TERM": "tmux-256color", "VTE_VERSION": "7200"}, false},
		{map[string]string{"TERM": "screen", "TERM_PROGRAM": "iTerm.app"}, false},
		{map[string]string{"TERM": "linux", "VTE_VERSION": "7200"}, false},
		{map[string]string{"TERM": "dumb", "VTE_VERSION": "7200"}, false},
	} {
		expect.Is(t, term.Detect(func(name string) string { return c.env[name] }, true, true, term.Flags{}).Links, c.want, c.env, "links")
	}
}
