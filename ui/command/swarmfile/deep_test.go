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
			_, err := load(text)
			expect.Fails(t, err, text)
		}
	}
	var steps strings.Builder
	for i := range 600 {
		steps.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	_, err := load(steps.String())
	expect.Fails(t, err, "600 levels were accepted")
}
