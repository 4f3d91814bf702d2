package ui

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/tree"
	"swarmdeck/expect"
	"swarmdeck/ui/pane/review"
)

const adasWork = `diff --git a/main.go b/main.go
--- a/main.go
+++ b/main.go
@@ -1,4 +1,5 @@ package main
 package main
 
-func main() {
+func main() { // greets
+	greet()
 }
@@ -20,2 +21,3 @@ func greet() {
 func greet() {
+	name, _ := read()
 }
diff --git a/util.go b/util.go
--- a/util.go
+++ b/util.go
@@ -1,2 +1,2 @@
 package main
-var a = 1
+var a = 2
`

// fakeWorks are the trees of ada, bob and eve.
type fakeWorks struct {
	turn  uint64
	looks map[string]*tree.Look
	said  map[string]*tree.Review
	asked []tree.Input
}

func newWorks() *fakeWorks {
	return &fakeWorks{
		looks: map[string]*tree.Look{
			"ada": {
				Tree: tree.Tree{Agent: "ada", Kind: tree.Git, Source: "/home/olga/shop", Base: "main", Since: "s0", BaseCommit: "s0"}, State: "s1",
				Changes: []tree.Change{{Path: "main.go", Status: "changed", Added: 3, Removed: 1}, {Path: "util.go", Status: "changed", Added: 1, Removed: 1}},
				Added:   4, Removed: 2, Ahead: 2, BehindBy: 1, Behind: true, Overlap: []string{"bob: main.go"},
			},
			"bob": {
				Tree: tree.Tree{Agent: "bob", Kind: tree.Git, Source: "/home/olga/shop", Base: "main", Since: "s0", BaseCommit: "s0"}, State: "s2",
				Changes: []tree.Change{{Path: "main.go", Status: "changed", Added: 2, Removed: 1}}, Added: 2, Removed: 1, Overlap: []string{"ada: main.go"},
			},
			"eve": {Tree: tree.Tree{Agent: "eve", Kind: tree.Git, Source: "/home/olga/shop", Base: "main", Since: "s3", BaseCommit: "c3"}, State: "s3"},
		},
		said: map[string]*tree.Review{"ada": {
			Agent: "ada", Remarks: []tree.Remark{
				{ID: 1, File: "main.go", Line: 4, Text: "why twice?", By: "olga", At: start},
				{ID: 2, File: "main.go", Line: 22, Text: "the error is dropped", By: "bert", At: start, Sent: "tk_1"},
			},
			Checked: &tree.Checked{State: "s1", At: start.Add(-5 * time.Minute), Runs: []tree.Ran{
				{Command: []string{"sh", "-c", "go vet ./..."}, TookMS: 300},
				{Command: []string{"sh", "-c", "go test ./..."}, Code: 1, TookMS: 1200, Tail: "--- FAIL: TestGreet\nFAIL"},
			}},
		}},
	}
}

func (w *fakeWorks) Look(_ context.Context, _, agent string) (tree.Look, error) {
	l := w.looks[agent]
	if l == nil {
		return tree.Look{}, core.Errorf(core.NotFound, "agent: %q has no tree", agent)
	}
	r := w.Review("", agent)
	out := *l
	out.Remarks, out.Checked = r.Remarks, r.Checked
	return out, nil
}

func (w *fakeWorks) Looks(ctx context.Context, _ string, f core.Filter) (core.Page[tree.Look], error) {
	f, err := f.Check()
	if err != nil {
		return core.Page[tree.Look]{}, err
	}
	var all []tree.Look
	for _, agent := range []string{"ada", "bob", "eve"} {
		l, _ := w.Look(ctx, "", agent)
		all = append(all, l)
	}
	return core.NewPage(all, f, len(all)), nil
}

func (w *fakeWorks) Review(_, agent string) tree.Review {
	if r := w.said[agent]; r != nil {
		return *r
	}
	return tree.Review{Agent: agent}
}

func (w *fakeWorks) Turn(string, string) uint64 { return w.turn }

func (w *fakeWorks) Asked(context.Context, string, string) ([]tree.Input, error) { return w.asked, nil }

// noTrees has no trees to read.
type noTrees struct{}

func (noTrees) Compare(context.Context, string, string, tree.Query) (tree.Compared, error) {
	return tree.Compared{}, core.Errorf(core.NotFound, "agent: it has no tree")
}

func (noTrees) Write(context.Context, tree.Compared, io.Writer) error { return nil }

func (noTrees) Whole(context.Context, string, judge.Action) ([]byte, error) { return nil, nil }

// workShelf has the diffs of the trees.
type workShelf struct{ texts map[string]string }

func (s workShelf) Diff(_ context.Context, _, ref string) (review.Stored, error) {
	r := strings.NewReader(s.texts[ref])
	out := review.Stored{Title: "of " + ref, Version: "1", Text: r, Size: r.Size()}
	if !strings.Contains(ref, " ") {
		out.State, out.Parts = "s1", tree.Parts([]byte(s.texts[ref]))
	}
	return out, nil
}

// reviewing opens the list of reviews.
func reviewing(t testing.TB, w, h int) (*rig, *fakeWorks) {
	t.Helper()
	world := newWorld()
	works := newWorks()
	world.works, world.shelf = works, workShelf{map[string]string{"tree:ada": adasWork, "tree:bob": twoFiles, "tree:ada bob": adasWork, "tree:bob ada": adasWork}}
	r := rigOn(t, world, w, h, Options{})
	r.keys("1", "R")
	return r, works
}

func TestTheReviewPanesLookRight(t *testing.T) {
	views(t, [][2]int{{80, 24}, {200, 50}}, func(t testing.TB, w, h int) *rig { r, _ := reviewing(t, w, h); return r }, [][2]string{
		{"reviews", ""},
		{"review", "t"},
		{"review-diff", "enter ] j j j j j"},
		{"review-compared", "space space ="},
	})
}

func TestWhatAnotherReviewerDoesIsSeenInTheDiff(t *testing.T) {
	r, works := reviewing(t, 80, 24)
	r.keys("enter")
	r.has("checks ✗ failed: go test ./..., 5m ago")
	r.change(func() {
		said := *works.said["ada"]
		said.Remarks = append(said.Remarks, tree.Remark{ID: 3, File: "util.go", Line: 2, Text: "three is enough", By: "bert", At: start})
		parts := core.SHA256(adasWork[strings.Index(adasWork, "diff --git a/util.go"):])
		said.Viewed = []tree.Viewed{{File: "util.go", By: "bert", SHA256: parts}}
		works.said["ada"] = &said
		works.asked = []tree.Input{{Agent: "ada", State: "s1", Only: []tree.Piece{{Path: "main.go", Hunks: []int{2}}}}}
	})
	r.has("◂ bert: three is enough")
	r.has("viewed by bert")
	r.has("accepted, to be approved")
	r.keys("}", "]", "j", "j", "j")
	r.has("3. bert, not sent: three is enough")
}

func TestAHunkIsAcceptedWithAKeyAsItWasShown(t *testing.T) {
	r, _ := reviewing(t, 80, 24)
	r.keys("enter", "]", "]", "j", "A")
	r.wantRun("review accept --state s1 -o sentence -- ada main.go:2")
	r.ran = nil
	r.keys("{", "A")
	r.wantRun("review accept --state s1 -o sentence -- ada main.go")
	r.ran = nil
	r.keys("space")
	r.wantRun("review viewed -o sentence -- ada main.go")
	r.ran = nil
	r.keys("{", "space")
	r.wantRun("review unviewed -o sentence -- ada main.go")
}

func TestAComparisonOfTwoWorksIsTurnedAround(t *testing.T) {
	r, _ := reviewing(t, 80, 24)
	r.keys("space", "space", "=")
	r.has("green is ada's, red is bob's")
	r.keys("W")
	r.has("green is bob's, red is ada's")
	r.keys("]", "A")
	r.ranNothing()
}

// refuses has lines that begin with the first word fail with a conflict, and all else do.
func refuses(r *rig, verb, details string) {
	r.runs = func(args []string) (string, string, int) {
		if args[0] == verb {
			return "", `{"error":{"code":"CONFLICT","message":"main and the work of ada both changed main.go; and so on","details":{"field":"agent","value":"ada",` + details + `}}}` + "\n", 1
		}
		if slices.Contains(args, "json") {
			return `{"agent":"ada","file":"main.go","conflicts":["main.go"]}`, "", 0
		}
		return "done\n", "", 0
	}
}

func TestAMergeThatConflictsIsGivenToTheAgentWithOneKey(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		r, _ := reviewing(t, size[0], size[1])
		refuses(r, "merge", `"conflicts":["main.go"]`)
		r.keys("enter", "M")
		r.typeText("Greet")
		r.keys("enter")
		r.golden(fmt.Sprintf("review-conflict-%dx%d", size[0], size[1]))
		r.ran = nil
		r.keys("g")
		r.wantRun("review update --conflicts send -o sentence -- ada")
	}
}

func TestAConflictThatIsMarkedAlreadyGoesBackWithOneKey(t *testing.T) {
	r, _ := reviewing(t, 80, 24)
	refuses(r, "merge", `"marked":["main.go"]`)
	r.keys("enter", "M")
	r.typeText("Greet")
	r.keys("enter")
	r.has("Conflict markers in main.go")
	r.ran = nil
	r.keys("g")
	r.wantRun("review send --text Resolve the conflict markers in main.go so that both intentions are kept. -o sentence -- ada")
}

func TestAConflictIsSettledInTheEditorWhereThereIsOne(t *testing.T) {
	r, _ := reviewing(t, 80, 24)
	refuses(r, "merge", `"conflicts":["main.go"]`)
	r.keys("M")
	r.typeText("Greet")
	r.keys("enter")
	r.ran = nil
	r.keys("e") // whoever sits elsewhere has none
	r.ranNothing()
	r.keys("esc")
	r.m.opt.Lend = func([]string) error { return nil }
	r.keys("M")
	r.typeText("Greet")
	r.keys("enter")
	r.ran = nil
	r.keys("e")
	want := []string{"review update --conflicts keep -o json -- ada", "review file -o json -- ada main.go"}
	expect.Same(t, r.ran, want, "ran")
	r.has("diff of tree:ada")
}
