package swarmfile_test

import (
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestNestingAndRepetitionAreBounded(t *testing.T) {
	for _, unit := range []string{"- ", "? ", "a: ", "!!x ", "&a ", "*a ", "[", "{", "{a: [", "-\n", "'", "\"", "| ", "> ", "# ", "\t", "[a,", "!", "&", "- - ? "} {
		text := "x: " + strings.Repeat(unit, (12<<10)/len(unit))
		for _, text := range []string{text, strings.TrimPrefix(text, "x: ")} {
			expect.Fails(t, expect.Fault(load(text)), text)
		}
	}
	var steps strings.Builder
	for i := range 600 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	expect.Fails(t, expect.Fault(load(steps.String())), "600 levels were accepted")
}
