package cockpit

import (
	"strings"
	"testing"

	"swarmdeck/ui"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestTheEnvironmentSaysHowToNotify(t *testing.T) {
	for value, want := range map[string]ui.Notice{"": ui.NoticeBell, "osc9": ui.NoticeOSC9, "osc777": ui.NoticeOSC777, "off": ui.NoticeOff} {
		if got, err := notice(environment(notify, value)); err != nil || got != want {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
	if _, err := notice(environment(notify, "growl")); err == nil || !strings.Contains(err.Error(), "osc777") {
		t.Errorf("%v", err)
	}
}

func TestThePagerGetsTheText(t *testing.T) {
	cmd := pager(environment("PAGER", "tr a-z A-Z"))("a diff\n")
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil || string(out) != "A DIFF\n" {
		t.Errorf("%q, %v", out, err)
	}
}
