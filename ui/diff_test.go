package ui

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"swarmdeck/engine/dag"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/pane/review"
)

// shelf has diffs by their refs; version counts what was put there.
type diffShelf struct {
	texts   map[string]string
	version int
	broken  error
}

func (s *diffShelf) Diff(_ context.Context, _, ref string) (review.Stored, error) {
	r := strings.NewReader(s.texts[ref])
	var text io.ReaderAt = r
	if s.broken != nil {
		text = brokenReader{s.broken}
	}
	return review.Stored{Title: "of " + ref, Version: fmt.Sprint(s.version), Text: text, Size: r.Size()}, nil
}

type brokenReader struct{ err error }

func (b brokenReader) ReadAt([]byte, int64) (int, error) { return 0, b.err }

const twoFiles = `diff --git a/cmd/main.go b/cmd/main.go
--- a/cmd/main.go
+++ b/cmd/main.go
@@ -1,6 +1,7 @@ package main
 import "fmt"
 
-func main() { // starts
+func main() { // starts it
+	prepare()
 	fmt.Println("hello")
 	\x1b[2Jfmt.Println("hostile \u202e text")
 }
@@ -40,2 +41,1 @@ func end() {
 	fmt.Println("bye")
-	os.Exit(0)
diff --git a/go.sum b/go.sum
--- a/go.sum
+++ b/go.sum
@@ -1 +1 @@
-a v1.0.0
+a v1.0.1
diff --git a/README.md b/README.md
new file mode 100644
--- /dev/null
+++ b/README.md
@@ -0,0 +1,2 @@
+# Title
+text
`

// openDiff shows a diff.
func openDiff(t testing.TB, w, h int, s *diffShelf) *rig {
	t.Helper()
	world := newWorld()
	world.shelf = s
	r := rigOn(t, world, w, h, Options{})
	r.m.openItem(pane.Item{Kind: review.DiffName, ID: "x"})
	r.do(r.m.sync())
	return r
}

func unescaped(text string) string {
	return strings.NewReplacer(`\x1b`, "\x1b", `\u202e`, "\u202e").Replace(text)
}

func TestTheDiffPaneLooksRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {200, 50}}, func(t testing.TB, w, h int) *rig {
		return openDiff(t, w, h, &diffShelf{texts: map[string]string{"x": unescaped(twoFiles)}})
	}, [][2]string{
		{"diff", ""},
		{"diff-side", "s ] j j"},
		{"diff-files", "f j"},
		{"diff-marked", "] j j j v j"},
		{"diff-viewed", "space enter }"},
		{"diff-found", "/ h e l l enter"},
	})
}

func TestADiffThatChangesStaysAtItsFile(t *testing.T) {
	s := &diffShelf{texts: map[string]string{"x": twoFiles}}
	r := openDiff(t, 80, 24, s)
	r.keys("}", "}", "space") // README.md is viewed
	r.change(func() {
		s.version++
		s.texts["x"] = strings.Replace(twoFiles, "+text", "+more text", 1)
	})
	r.has("README.md  3/3")
	r.has("1 viewed")
	r.keys("space")
	r.has("+more text")
}

func TestALineOfADiffIsWhatIsSelected(t *testing.T) {
	r := openDiff(t, 80, 24, &diffShelf{texts: map[string]string{"x": twoFiles}})
	r.keys("j", "j", "j")
	p := r.m.panes[review.DiffName].(*review.Diff)
	it := p.Selected(r.m.env())
	expect.True(t, it.Part == "cmd/main.go:2" && it.ID == "x", "selected is %+v", it)
	r.keys("j", "v", "j")
	expect.Is(t, p.Selected(r.m.env()).Part, "cmd/main.go:3", "marked")
}

func TestADiffThatCantBeReadSaysSo(t *testing.T) {
	r := openDiff(t, 80, 24, &diffShelf{texts: map[string]string{"x": twoFiles}, broken: io.ErrUnexpectedEOF})
	r.has("scan the diff at 0: unexpected EOF")
	r.keys("j", "]", "}", "s", "f", "z", "Z", "space", "v", "/", "x", "enter", "n", "q")
}

func TestAChangedFileOfAnAgentOpensAsADiff(t *testing.T) {
	r := newRig(t, 120, 40)
	openScribe(r)
	for range 60 {
		if it := r.m.focused().(pane.Opener).Open(r.m.env()); it.Part == "#2" {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.has("docs/index.md  2/2")
	r.has("+see NOTES.md ⟨ESC⟩[2J⟨U+202E⟩")
	r.keys("{")
	r.has("NOTES.md  1/2")
}

func TestTheCardShowsChangesOnceAndAllArgumentsWithAKey(t *testing.T) {
	r := newRig(t, 80, 50)
	r.keys("3", "enter")
	r.has("+three files changed")
	r.lacks(`"text"`)
	r.keys("f")
	r.has(`"text": "three files changed\n"`)
	r.keys("f")
	r.lacks(`"text"`)
	r.keys("enter") // it never does anything on a card
	r.has("approval")
	r.keys("v")
	r.has("diff that scribe wants to make")
	r.keys("q")
	r.has("approval")
	r.ranNothing()
}

func TestAHighRiskIsArmedAtTheEndOfItsChanges(t *testing.T) {
	w := newWorld()
	a := *w.approvals[0]
	a.Risk = judge.High
	w.approvals[0] = &a
	r := rigOn(t, w, 80, 24, Options{})
	r.keys("3")
	for range 3 {
		if it := r.m.focused().Selected(r.m.env()); it.ID == a.ApprovalID {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.wait(deadTime)
	ok, _ := r.m.card.Armed()
	expect.Must(t, !ok, "armed before its end was seen")
	r.keys("G")
	ok, why := r.m.card.Armed()
	expect.Must(t, ok, "%v", why)
	r.keys("g", "f") // other text: it is to be read again
	ok, _ = r.m.card.Armed()
	expect.Must(t, !ok, "armed although all arguments were not seen")
}

// pair compares two that changed a file.
type pair struct{}

func (pair) Compare(context.Context, string, string, string) (dag.Comparison, error) {
	return dag.Comparison{
		A: dag.Side{Subject: "agent:a", Exit: "success"}, B: dag.Side{Subject: "agent:b", Exit: "success"},
		Files: []dag.ComparedFile{
			{Op: dag.Changed, Path: "x.go", A: "+1 -1", B: "+1 -0", DiffA: "@@ -1 +1 @@\n-a\n+b\n", DiffB: "@@ -1 +1,2 @@\n a\n+c\n"},
			{Op: dag.Same, Path: "y.go", A: "+1 -0", B: "+1 -0", DiffA: "@@ -0,0 +1 @@\n+y\n", DiffB: "@@ -0,0 +1 @@\n+y\n"},
		},
	}, nil
}

func TestAFileOfAComparisonOpensAsADiff(t *testing.T) {
	w := newWorld()
	w.rec.Comparer = pair{}
	r := rigOn(t, w, 80, 24, Options{})
	r.m.openItem(pane.Item{Kind: "compare", ID: "agent:a agent:b"})
	r.do(r.m.sync())
	for range 20 {
		if it := r.m.focused().(pane.Opener).Open(r.m.env()); it.Kind == "diff" {
			break
		}
		r.keys("j")
	}
	r.keys("enter")
	r.has("diff of agent:a (A) and agent:b (B)  A: x.go  1/3")
	r.has("B: x.go +1 -0")
	r.has("A and B: y.go +1 -0")
}
