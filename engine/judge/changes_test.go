package judge

import (
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
	for _, c := range []struct{ name, args, path, diff, note string }{
		{"a text in place of another", `{"file_path":"a.txt","old_string":"two","new_string":"2"}`, "a.txt", "a.txt\n@@ -1 +1 @@\n-two\n+2", ""},
		{"the whole of a file that was judged", `{"path":"a.txt","content":"one\n2\n"}`, "a.txt", "a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2", ""},
		{"the whole of one that nobody knows", `{"path":"new.txt","content":"x\n"}`, "new.txt", "new.txt\n@@ -0,0 +1 @@\n+x", "what the file holds now is not known here"},
		{"edits below a path", `{"path":"b","edits":[{"oldText":"a","newText":"b"}]}`, "b", "b\n@@ -1 +1 @@\n-a\n+b", ""},
		{"what an ACP agent shows", `{"title":"edit","diffs":[{"path":"/w/c.go","oldText":"a","newText":"b"}]}`, "/w/c.go", "/w/c.go\n@@ -1 +1 @@\n-a\n+b", ""},
		{"a patch", `{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b"}`, "", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "as it was given"},
		{"none", `{"path":"a.txt"}`, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := (&Action{Args: core.Raw(c.args)}).changes(kept)
			if c.diff == "" {
				if len(got) > 0 {
					t.Fatalf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0] != (Change{c.path, c.diff, c.note}) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}
