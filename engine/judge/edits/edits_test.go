package edits

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"swarmdeck/engine/core"
)

func TestTheChangesOfFilesAreReadInWhatToolsAreGiven(t *testing.T) {
	kept := func(path string) (string, bool) {
		if path != "a.txt" {
			return "", false
		}
		return "one\ntwo\n", true
	}
	long := strings.Repeat("line\n", 20)
	for _, c := range []struct{ name, args, path, diff, note, shown string }{
		{"a text in place of another", `{"file_path":"a.txt","old_string":"two","new_string":"2"}`, "a.txt", "a.txt\n@@ -1 +1 @@\n-two\n+2", "", "/old_string /new_string"},
		{"the whole of a file that was judged", `{"path":"a.txt","content":"one\n2\n"}`, "a.txt", "a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2", "", "/content"},
		{"the whole of one that nobody knows", `{"path":"new.txt","content":"x\n"}`, "new.txt", "new.txt\n@@ -0,0 +1 @@\n+x", "what the file holds now is not known here", "/content"},
		{"edits below a path", `{"path":"b","edits":[{"oldText":"a","newText":"b"}]}`, "b", "b\n@@ -1 +1 @@\n-a\n+b", "", "/edits/0/oldText /edits/0/newText"},
		{"what an ACP agent shows", `{"title":"edit","diffs":[{"path":"/w/c.go","oldText":"a","newText":"b"}]}`, "/w/c.go", "/w/c.go\n@@ -1 +1 @@\n-a\n+b", "", "/diffs/0/oldText /diffs/0/newText"},
		{"a patch", `{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"}`, "", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "as it was given", "/patch"},
		{"a change that is told twice", `{"title":"edit","input":{"file_path":"/w/c.go","old_string":"a","new_string":"b"},"diffs":[{"path":"/w/c.go","oldText":"a","newText":"b"}]}`, "/w/c.go", "/w/c.go\n@@ -1 +1 @@\n-a\n+b", "", "/input/old_string /input/new_string /diffs/0/oldText /diffs/0/newText"},
		{
			"one that is told as edits and as the whole file", `{"input":{"file_path":"c.go","edits":[{"oldText":"x","newText":"X"},{"oldText":"y","newText":"Y"}]},"diffs":[{"path":"/w/c.go","oldText":"x\ny\n","newText":"X\nY\n"}]}`, "/w/c.go", "/w/c.go\n@@ -1,2 +1,2 @@\n-x\n-y\n+X\n+Y", "",
			"/diffs/0/oldText /diffs/0/newText /input/edits/0/oldText /input/edits/0/newText /input/edits/1/oldText /input/edits/1/newText",
		},
		{"a new file that is told twice", `{"input":{"file_path":"n","content":"x\n"},"diffs":[{"path":"/w/n","newText":"x\n"}]}`, "n", "n\n@@ -0,0 +1 @@\n+x", "what the file holds now is not known here", "/input/content /diffs/0/newText"},
		{"a file that is there and told as a new one", `{"input":{"file_path":"a.txt","content":"one\n2\n"},"diffs":[{"path":"a.txt","oldText":null,"newText":"one\n2\n"}]}`, "a.txt", "a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2", "", "/input/content /diffs/0/newText"},
		{"lines that only the agent says are there", string(core.MustEncode(map[string]string{"path": "l", "oldText": long + "a\n", "newText": long + "b\n"})), "l", "l\n@@ -18,4 +18,4 @@\n line\n line\n line\n-a\n+b", "lines that stay, as the agent says, are left out", "/oldText /newText"},
		{"the end of a line", `{"path":"e","oldText":"a\n","newText":"a"}`, "e", "e\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file", "", "/oldText /newText"},
		{"none", `{"path":"a.txt"}`, "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Of(core.Raw(c.args), kept)
			if c.diff == "" {
				if len(got) > 0 {
					t.Fatalf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || !reflect.DeepEqual(got[0], Change{c.path, c.diff, c.note, strings.Fields(c.shown)}) {
				t.Fatalf("got %q", got)
			}
		})
	}
}

func TestChangesThatDifferAreAllShown(t *testing.T) {
	args := `{"input":{"file_path":"c","old_string":"a","new_string":"evil"},"diffs":[{"path":"c","oldText":"a","newText":"b"}]}`
	got := Of(core.Raw(args), func(string) (string, bool) { return "", false })
	if len(got) != 2 || !strings.Contains(got[0].Diff, "evil") {
		t.Fatalf("got %q", got)
	}
	long := strings.Repeat("x\n", MaxShown)
	got = Of(core.MustEncode(map[string]string{"path": "c", "content": long}), func(string) (string, bool) { return "", false })
	if len(got) != 1 || got[0].Args != nil || !strings.HasSuffix(got[0].Note, "it goes on") {
		t.Fatalf("a long one: %q %q", got[0].Args, got[0].Note)
	}
}

func TestAPatchNamesEachFileAndSaysWhatItDoesNotDraw(t *testing.T) {
	var b strings.Builder
	b.WriteString("main is at x")
	part := func(name string, lines int) {
		fmt.Fprintf(&b, "\ndiff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n%s+end", name, name, name, lines+1, strings.Repeat("+x\n", lines))
	}
	part("a", 2)
	head, all, cut := Landing(b.String())
	if head != "main is at x" || len(all) != 1 || cut || all[0].Path != "a" || !strings.HasSuffix(all[0].Diff, "+end") {
		t.Fatalf("%q %+v %t", head, all, cut)
	}
	if _, all, cut = Landing(b.String() + Rest); len(all) != 1 || !cut || !strings.HasSuffix(all[0].Diff, "+end") {
		t.Fatalf("%+v %t", all, cut)
	}
	part("long", MaxShown)
	for i := range 2 * maxChanges {
		part(fmt.Sprint("f", i), 1)
	}
	_, all, cut = Landing(b.String())
	if len(all) != 2+2*maxChanges || !cut || !strings.HasSuffix(all[1].Note, "it goes on") || all[2].Diff == "" || all[2].Note != "new file mode 100644" {
		t.Fatalf("%d %t %+v", len(all), cut, all[2])
	}
	if last := all[len(all)-1]; last.Path != fmt.Sprint("f", 2*maxChanges-1) || last.Diff != "" || !strings.HasSuffix(last.Note, "not drawn here") {
		t.Fatalf("%+v", last)
	}
}
