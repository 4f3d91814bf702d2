package term_test

import (
	"testing"

	"github.com/charmbracelet/colorprofile"

	"swarmdeck/expect"
	"swarmdeck/ui/term"
)

func TestDetect(t *testing.T) {
	base := map[string]string{"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}
	type want struct {
		plain, ascii, sync, ssh bool
		color                   colorprofile.Profile
	}
	full := want{color: colorprofile.ANSI256}
	tests := []struct {
		name    string
		env     map[string]string
		stdin   bool
		stdout  bool
		flags   term.Flags
		want    want
		because string
	}{
		{"usual", nil, true, true, term.Flags{}, full, ""},
		{"true colour", map[string]string{"COLORTERM": "truecolor"}, true, true, term.Flags{}, want{color: colorprofile.TrueColor}, ""},
		{"true colour through screen", map[string]string{"COLORTERM": "truecolor", "TERM": "screen-256color"}, true, true, term.Flags{}, full, ""},
		{"NO_COLOR=1", map[string]string{"NO_COLOR": "1"}, true, true, term.Flags{}, want{color: colorprofile.ASCII}, ""},
		{"NO_COLOR=yes", map[string]string{"NO_COLOR": "yes"}, true, true, term.Flags{}, want{color: colorprofile.ASCII}, ""},
		{"NO_COLOR=0 counts too", map[string]string{"NO_COLOR": "0"}, true, true, term.Flags{}, want{color: colorprofile.ASCII}, ""},
		{"NO_COLOR empty", map[string]string{"NO_COLOR": ""}, true, true, term.Flags{}, full, ""},
		{"NO_COLOR but --color=always", map[string]string{"NO_COLOR": "1"}, true, true, term.Flags{Color: "always"}, full, ""},
		{"--color=never", nil, true, true, term.Flags{Color: "never"}, want{color: colorprofile.ASCII}, ""},
		{"CLICOLOR=0", map[string]string{"CLICOLOR": "0"}, true, true, term.Flags{}, want{color: colorprofile.ASCII}, ""},
		{"pipe", nil, true, false, term.Flags{}, want{plain: true, color: colorprofile.NoTTY}, "standard output is not a terminal"},
		{"pipe with CLICOLOR_FORCE", map[string]string{"CLICOLOR_FORCE": "1"}, true, false, term.Flags{}, want{plain: true, color: colorprofile.ANSI256}, "standard output is not a terminal"},
		{"CLICOLOR_FORCE=0", map[string]string{"CLICOLOR_FORCE": "0"}, true, false, term.Flags{}, want{plain: true, color: colorprofile.NoTTY}, "standard output is not a terminal"},
		{"NO_COLOR beats CLICOLOR_FORCE", map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, true, true, term.Flags{}, want{color: colorprofile.ASCII}, ""},
		{"input is no terminal", nil, false, true, term.Flags{}, want{plain: true, color: colorprofile.ANSI256}, "standard input is not a terminal"},
		{"dumb", map[string]string{"TERM": "dumb"}, true, true, term.Flags{}, want{plain: true, color: colorprofile.NoTTY}, "TERM is dumb"},
		{"dumb at the other end of a connection", map[string]string{"TERM": "dumb"}, false, false, term.Flags{}, want{plain: true, color: colorprofile.NoTTY}, "TERM is dumb"},
		{"unset", map[string]string{"TERM": ""}, true, true, term.Flags{}, want{plain: true, color: colorprofile.NoTTY}, "TERM is not set"},
		{"C locale", map[string]string{"LC_ALL": "C"}, true, true, term.Flags{}, want{ascii: true, color: colorprofile.ANSI256}, ""},
		{"no locale", map[string]string{"LANG": ""}, true, true, term.Flags{}, want{ascii: true, color: colorprofile.ANSI256}, ""},
		{"C.utf8", map[string]string{"LANG": "C.utf8"}, true, true, term.Flags{}, full, ""},
		{"ambiguous width set to two", map[string]string{"RUNEWIDTH_EASTASIAN": "1"}, true, true, term.Flags{}, want{ascii: true, color: colorprofile.ANSI256}, ""},
		{"--ascii", nil, true, true, term.Flags{ASCII: true}, want{ascii: true, color: colorprofile.ANSI256}, ""},
		{"ssh", map[string]string{"SSH_TTY": "/dev/pts/1"}, true, true, term.Flags{}, want{sync: true, ssh: true, color: colorprofile.ANSI256}, ""},
		{"ssh in kitty", map[string]string{"SSH_TTY": "/dev/pts/1", "TERM": "xterm-kitty"}, true, true, term.Flags{}, want{ssh: true, color: colorprofile.ANSI256}, ""},
		{"accessible", map[string]string{"ACCESSIBLE": "1"}, true, true, term.Flags{}, want{plain: true, color: colorprofile.ANSI256}, "accessible mode"},
		{"accessible off", map[string]string{"ACCESSIBLE": "0"}, true, true, term.Flags{}, full, ""},
		{"linux console", map[string]string{"TERM": "linux"}, true, true, term.Flags{}, want{color: colorprofile.ANSI}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := func(name string) string {
				if v, ok := tt.env[name]; ok {
					return v
				}
				return base[name]
			}
			c := term.Detect(env, tt.stdin, tt.stdout, tt.flags)
			got := want{c.Plain, c.ASCII, c.Sync, c.SSH, c.Color}
			expect.True(t, got == tt.want && c.Why == tt.because, "got %+v because %q, want %+v because %q", got, c.Why, tt.want, tt.because)
		})
	}
}
