package rules

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What make test leaves out by its name is of a suite, so that some run has it.
func TestWhatIsLeftOutIsOfASuite(t *testing.T) {
	out, err := exec.Command("bash", ".ci/outside", "tests").Output()
	if err != nil {
		t.Fatal(err)
	}
	type part struct{ pkg, names string }
	suites := map[part]*regexp.Regexp{}
	var all []string
	for line := range strings.Lines(string(out)) {
		pkg, names, _ := strings.Cut(strings.TrimSpace(line), "\t")
		suites[part{pkg, names}] = regexp.MustCompile(names)
		if names != "." {
			all = append(all, names)
		}
	}
	left := regexp.MustCompile(strings.Join(all, "|"))
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	files, err := filepath.Glob("*/*_test.go")
	for _, deep := range []string{"*/*/*_test.go", "*/*/*/*_test.go", "*/*/*/*/*_test.go"} {
		more, _ := filepath.Glob(deep)
		files = append(files, more...)
	}
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	used := map[part]bool{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Dir(filepath.ToSlash(name))
		for _, found := range test.FindAllStringSubmatch(string(data), -1) {
			of := false
			for p, names := range suites {
				if p.pkg == pkg && names.MatchString(found[1]) {
					of, used[p] = true, true
				}
			}
			if !of && left.MatchString(found[1]) {
				t.Errorf("%s: %s is left out of make test by its name, and is of no suite: name it otherwise", name, found[1])
			}
		}
	}
	for p := range suites {
		if !used[p] {
			t.Errorf(".ci/outside: no test of %s is named %s", p.pkg, p.names)
		}
	}
}
