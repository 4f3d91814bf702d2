package script

import (
	"strings"
	"testing"
	"unicode/utf8"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

func TestAPictureIsTheSameInEveryRun(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want string }{
		"ids": {
			"│ tk_8a039_0000000002 ev_8a039_0000000012│", "│ tk_77777_0000000002 ev_77777_0000000012│",
			"│ tk_xxxxx_0000000002 ev_xxxxx_0000000012│",
		},
		"digests":    {"digest 07ab4f8e9d3c2b1a07ab", "digest ffab4f8e9d3c2b1a07ff", "digest 00000000000000000000"},
		"ages":       {"│ idle    9s│", "│ idle  143m│", "│ idle    0s│"},
		"countdowns": {"medium risk 14m49s left", "medium risk    59s left", "medium risk     0s left"},
		"times":      {"2026-11-21 01:15:32 begun", "2026-11-22 23:59:59 begun", "0000-00-00 00:00:00 begun"},
		"hours":      {"at 01:15 UTC", "at 23:59 UTC", "at 00:00 UTC"},
		"processes":  {"│process  6018, 0 restarts    │", "│process  4194303, 0 restarts │", "│process  0000000, 0 restarts │"},
		"places":     {"/tmp/swarmdeck-deadbeef/script-x", "/tmp/swarmdeck-01234567/script-x", "/tmp/swarmdeck-00000000/script-x"},
		"words":      {"a 12 b 3 of 4, 100%", "a 12 b 3 of 4, 100%", "a 12 b 3 of 4, 100%"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, row := range []string{c.a, c.b} {
				expect.Is(t, steady(row), c.want, row, "became")
			}
		})
	}
}

func TestAPictureHasARowOfRolesForEachRow(t *testing.T) {
	c := screen.New(20, 3)
	c.Text(0, 0, screen.Header, "tk_8a039_0000000001")
	c.Text(1, 1, screen.Danger, "stop")
	text, roles, ok := strings.Cut(Picture(c), "~ roles\n")
	expect.True(t, ok && text == "tk_xxxxx_0000000001\n stop\n\n" && roles == "HHHHHHHHHHHHHHHHHHH\n.DDDD\n\n", "text %q, roles %q", text, roles)
}

func FuzzSteadyRowsKeepTheirWidth(f *testing.F) {
	for _, row := range []string{"│ idle 143m│", "process 6018, 0 restarts  │", "tk_8a039_0000000002", "pid 1", "12:34", "9s9s9s", "process 1 2 3"} {
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row string) {
		if !utf8.ValidString(row) {
			return
		}
		got := steady(row)
		if strings.Contains(row, "pid") || strings.Contains(row, "process") {
			return // the number is made seven digits where there is no room
		}
		expect.Is(t, utf8.RuneCountInString(got), utf8.RuneCountInString(row), row, "became", got)
	})
}
