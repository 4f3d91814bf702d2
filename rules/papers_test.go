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

// TestMessagesThatThePapersExplainAreThePrograms tells it by parts: what stands between the
// numbers, paths and names of a message is a text of the program.
func TestMessagesThatThePapersExplainAreThePrograms(t *testing.T) {
	text := string(expect.Of(os.ReadFile("docs/trouble.md"))(t))
	_, refused, _ := strings.Cut(text, "\n## You are refused\n")
	messages := regexp.MustCompile("(?m)^    (.*)|\\*\\*`(.*?)`").FindAllStringSubmatch(text, -1)
	messages = append(messages, regexp.MustCompile(`(?m)^(\w.*?)(?:  |$)`).FindAllStringSubmatch(refused, -1)...)
	var program strings.Builder
	for _, p := range packages(t) {
		for _, base := range p.GoFiles {
			program.Write(expect.Of(os.ReadFile(filepath.Join(p.Dir, base)))(t))
		}
	}
	varies := regexp.MustCompile("\\d[\\dTZ:.-]*|/[\\w./-]+|[…:;,`()]")
	found := 0
	for _, m := range messages {
		message := m[1] + strings.Join(m[2:], "")
		if strings.HasPrefix(message, "swarmdeck ") {
			continue
		}
		for _, fixed := range varies.Split(message, -1) {
			if fixed = strings.TrimSpace(fixed); len(fixed) >= 12 {
				found++
				expect.True(t, strings.Contains(program.String(), fixed), "docs/trouble.md: %q: the program never says %q", message, fixed)
			}
		}
	}
	expect.True(t, found >= 6, "only %d parts of messages", found)
}
