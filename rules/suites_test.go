package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// What make test leaves out by its name is of a suite, so that some run has it.
func TestWhatIsLeftOutIsOfASuite(t *testing.T) {
	out := expect.Of(exec.Command("bash", ".ci/outside", "tests").Output())(t)
	type share struct{ pkg, names string }
	suites := map[share]*regexp.Regexp{}
	var all []string
	for line := range strings.Lines(string(out)) {
		pkg, names, _ := strings.Cut(strings.TrimSpace(line), "\t")
		suites[share{pkg, names}] = regexp.MustCompile(names)
		if names != "." {
			all = append(all, names)
		}
	}
	left := regexp.MustCompile(strings.Join(all, "|"))
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	used := map[share]bool{}
	for _, in := range packages(t) {
		pkg, _ := part(in.ImportPath)
		for _, name := range slices.Concat(in.TestGoFiles, in.XTestGoFiles) {
			data := expect.Of(os.ReadFile(filepath.Join(in.Dir, name)))(t)
			for _, found := range test.FindAllStringSubmatch(string(data), -1) {
				of := false
				for p, names := range suites {
					if p.pkg == pkg && names.MatchString(found[1]) {
						of, used[p] = true, true
					}
				}
				if !of && left.MatchString(found[1]) {
					t.Errorf("%s: %s is left out of make test by its name, and is of no suite: name it otherwise", pkg, found[1])
				}
			}
		}
	}
	for p := range suites {
		expect.True(t, used[p], ".ci/outside: no test of %s is named %s", p.pkg, p.names)
	}
}
