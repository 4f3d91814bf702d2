package swarmfile_test

import (
	"strings"
	"testing"
	"time"
)

func TestNestingAndRepetitionAreBounded(t *testing.T) {
	for _, unit := range []string{"- ", "? ", "a: ", "!!x ", "&a ", "*a ", "[", "{", "{a: [", "-\n", "'", "\"", "| ", "> ", "# ", "\t", "[a,", "!", "&", "- - ? "} {
		text := "x: " + strings.Repeat(unit, (12<<10)/len(unit))
		for _, text := range []string{text, strings.TrimPrefix(text, "x: ")} {
			start := time.Now()
			if _, err := load(text); err == nil {
				t.Errorf("%.20q… was accepted", text)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%.20q… took %s", text, took)
			}
		}
	}
	var steps strings.Builder
	for i := range 600 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	if _, err := load(steps.String()); err == nil {
		t.Error("600 levels were accepted")
	}
}
