package procfs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// line is a stat file of a program of this name.
func line(name string) string {
	return fmt.Sprintf("77 (%s) S 5 70 60 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1 2 3\n", name)
}

func TestStatIsReadWhateverTheNameHolds(t *testing.T) {
	want := Stat{PID: 77, Parent: 5, Group: 70, Session: 60, Start: 123456, State: 'S'}
	for _, name := range []string{"sh", "", ") Z 1 (", "a b", "\n", "((", "))"} {
		expect.Is(t, expect.Of(Parse([]byte(line(name))))(t), want, name)
	}
}

func TestAProcessThatEndsIsExiting(t *testing.T) {
	for flags, want := range map[string]bool{"4194560": false, "4194564": true} {
		s, err := Parse([]byte(strings.Replace(line("sh"), "4194560", flags, 1)))
		expect.True(t, err == nil && s.Exiting == want, "%s: %+v %v", flags, s, err)
	}
}

func TestWhatIsNoStatIsRefused(t *testing.T) {
	for _, text := range []string{"", "77", ") (", "77 (sh) S", "77 (sh) SS" + strings.Repeat(" 1", 20), "x (sh) S" + strings.Repeat(" 1", 20), "77 (sh) S" + strings.Repeat(" -", 20)} {
		got, err := Parse([]byte(text))
		expect.True(t, err != nil && got == (Stat{}), "%q: %+v %v", text, got, err)
	}
	expect.Fails(t, expect.Fault(Read(-1)), "there is a process -1")
}

func TestThisProcessRuns(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc")
	}
	s, err := Read(os.Getpid())
	expect.True(t, err == nil && s.PID == os.Getpid() && s.Parent == os.Getppid() && s.Start != 0 && !s.Dead() && !s.Stopped() && !s.Exiting, "%+v %v", s, err)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(line("sh")))
	f.Add([]byte(line(") (")))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		expect.True(t, err == nil || s == (Stat{}), "half of it: %+v", s)
	})
}
