package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesOfThePapersRun plays what the papers show as scripts.
func TestExamplesOfThePapersRun(t *testing.T) {
	papers, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```txtar\n(.*?)^```")
	found := 0
	for _, paper := range papers {
		text, err := os.ReadFile(paper)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			found++
			if code, stdout, stderr := newPlayer(t).play(m[1]); code != 0 {
				t.Errorf("%s:\n%s\nexit code %d\n%s%s", paper, m[1], code, stdout, stderr)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d examples", found)
	}
}

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
