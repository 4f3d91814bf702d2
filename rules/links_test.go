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

func TestLinksOfThePapersLeadSomewhere(t *testing.T) {
	papers, err := filepath.Glob("docs/*.md")
	expect.Must(t, err == nil && len(papers) != 0, "no papers: %v", err)
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	mark := regexp.MustCompile(`[^a-z0-9 -]`)
	for _, paper := range append(papers, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md") {
		text := expect.Of(os.ReadFile(paper))(t)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, under, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			page := paper
			if to != "" {
				page = filepath.Join(filepath.Dir(paper), to)
			}
			there, err := os.ReadFile(page)
			if _, bad := os.Stat(page); bad != nil {
				t.Errorf("%s leads to %s, which is not there", paper, m[1])
			}
			if err != nil || under == "" {
				continue
			}
			if !slices.ContainsFunc(heading.FindAllStringSubmatch(string(there), -1), func(h []string) bool {
				return strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == under
			}) {
				t.Errorf("%s leads to %s, where no heading is called so", paper, m[1])
			}
		}
	}
}
