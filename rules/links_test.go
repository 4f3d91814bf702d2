package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestLinksOfThePapersLeadSomewhere(t *testing.T) {
	papers, err := filepath.Glob("docs/*.md")
	if err != nil || len(papers) == 0 {
		t.Fatalf("no papers: %v", err)
	}
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	for _, paper := range append(papers, "README.md", "examples/README.md") {
		text, err := os.ReadFile(paper)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || to == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(paper), to)); err != nil {
				t.Errorf("%s leads to %s, which is not there", paper, m[1])
			}
		}
	}
}
