package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// TestTheMapNamesEveryPackage holds the map of docs/architecture.md to what there is.
func TestTheMapNamesEveryPackage(t *testing.T) {
	text := expect.Of(os.ReadFile("docs/architecture.md"))(t)
	_, after, _ := strings.Cut(string(text), "\n## Packages\n")
	section, _, _ := strings.Cut(after, "\n## ")
	named := map[string]bool{"": true}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9/]+)(  |$)`).FindAllStringSubmatch(section, -1) {
		named[m[1]] = true
	}
	for _, p := range packages(t) {
		of, _ := part(p.ImportPath)
		expect.True(t, named[of], "docs/architecture.md does not name the package %s", of)
	}
	for of := range named {
		entry, err := os.Stat("./" + of)
		expect.True(t, err == nil && entry.IsDir(), "docs/architecture.md names the package %s, which is not there", of)
	}
}

// TestCitedRequirementsAreThere holds what comments cite to docs/requirements.md.
func TestCitedRequirementsAreThere(t *testing.T) {
	text := expect.Of(os.ReadFile("docs/requirements.md"))(t)
	cited := regexp.MustCompile(`requirement (\d+\.\d+)`)
	for _, p := range packages(t) {
		for _, base := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			code := expect.Of(os.ReadFile(filepath.Join(p.Dir, base)))(t)
			for _, m := range cited.FindAllStringSubmatch(string(code), -1) {
				expect.True(t, strings.Contains(string(text), "\n- "+m[1]+" "), "%s/%s cites requirement %s, which is not there", p.Dir, base, m[1])
			}
		}
	}
}
