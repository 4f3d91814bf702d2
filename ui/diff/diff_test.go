package diff

import (
	"fmt"
	"strings"
	"testing"

	engine "swarmdeck/engine/diff"
	"swarmdeck/ui/screen"
)

// drawn are a file's rows, each with its role.
func drawn(files []File) string {
	var out []string
	for i := range files {
		out = append(out, "file "+files[i].Path)
		for _, r := range files[i].Rows() {
			out = append(out, fmt.Sprintf("%s%s [%s]", r.Lead, r.Text, r.Role))
		}
	}
	return strings.Join(out, "\n")
}

func TestADiffIsReadWithItsNumbersAndRoles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{
			"of the engine", engine.Unified("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n", 1<<20),
			"file a.txt\n  @@ line 1  [accent]\n1  one [text]\n2 -two [removed]\n2 +2 [added]\n3  three [text]",
		},
		{
			"of git, two files", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -9,2 +9 @@ func f()\n a\n-b\n\\ No newline at end of file\ndiff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+new\n",
			"file x\n   @@ line 9 func f() [accent]\n 9  a [text]\n10 -b [removed]\n   No newline at end of file [dim]\nfile y\n  @@ line 1  [accent]\n1 +new [added]",
		},
		{"lines that look like a head are lines while the hunk lasts", "f\n@@ -1 +1,2 @@\n--- a\n+++ b\n+@@ -1 +1 @@", "file f\n  @@ line 1  [accent]\n1 --- a [removed]\n1 +++ b [added]\n2 +@@ -1 +1 @@ [added]"},
		{"no diff", "hello\nworld", ""},
		{"", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := drawn(Parse(c.text)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestLinesAreCounted(t *testing.T) {
	files := Parse("f\n@@ -1,2 +1 @@\n-a\n-b\n+c")
	if added, removed := files[0].Counts(); added != 1 || removed != 2 {
		t.Fatalf("+%d -%d", added, removed)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n\\ No newline")
	f.Add("x\n@@ -1073741825 +1 @@\n+a")
	f.Add("x\n@@ -1,99999999 +1 @@\n+a\n\n\n-")
	f.Fuzz(func(t *testing.T, text string) {
		lines := 0
		for _, file := range Parse(text) {
			lines += len(file.Lines)
			for _, r := range file.Rows() {
				if strings.Contains(r.Text, "\n") || r.Role >= screen.Roles {
					t.Fatalf("row %+v", r)
				}
			}
		}
		if lines > strings.Count(text, "\n")+1 {
			t.Fatalf("%d lines of %q", lines, text)
		}
	})
}
