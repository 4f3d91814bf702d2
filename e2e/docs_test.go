package e2e

import (
	"os"
	"path/filepath"
	"regexp"
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
