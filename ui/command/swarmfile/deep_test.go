package swarmfile_test

import (
	"strings"
	"testing"
)

func TestNestingAndRepetitionAreBounded(t *testing.T) {
	for _, unit := range []string{"- ", "? ", "a: ", "!!x ", "&a ", "*a ", "[", "{", "{a: [", "-\n", "'", "\"", "| ", "> ", "# ", "\t", "[a,", "!", "&", "- - ? "} {
		text := "x: " + strings.Repeat(unit, (12<<10)/len(unit))
		for _, text := range []string{text, strings.TrimPrefix(text, "x: ")} {
			if _, err := load(text); err == nil {
				t.Errorf("%.20q… was accepted", text)
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
