package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheMapNamesEveryPackage holds the map of docs/architecture.md to what there is.
func TestTheMapNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, _ := strings.Cut(after, "\n## ")
	named := map[string]bool{"": true}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9/]+)(  |$)`).FindAllStringSubmatch(section, -1) {
		named[m[1]] = true
	}
	for _, p := range packages(t) {
		if of, _ := part(p.ImportPath); !named[of] {
			t.Errorf("docs/architecture.md does not name the package %s", of)
		}
	}
	for of := range named {
		if entry, err := os.Stat("./" + of); err != nil || !entry.IsDir() {
			t.Errorf("docs/architecture.md names the package %s, which is not there", of)
		}
	}
}

// TestCitedRequirementsAreThere holds what comments cite to docs/requirements.md.
func TestCitedRequirementsAreThere(t *testing.T) {
	text, err := os.ReadFile("docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	cited := regexp.MustCompile(`requirement (\d+\.\d+)`)
	for _, p := range packages(t) {
		for _, base := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			code, err := os.ReadFile(filepath.Join(p.Dir, base))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range cited.FindAllStringSubmatch(string(code), -1) {
				if !strings.Contains(string(text), "\n- "+m[1]+" ") {
					t.Errorf("%s/%s cites requirement %s, which is not there", p.Dir, base, m[1])
				}
			}
		}
	}
}
