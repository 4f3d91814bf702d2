package diff

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/screen/screentest"
)

// fill loads what a view wants.
func fill(t testing.TB, v *View) {
	t.Helper()
	for {
		wants := v.Wants(8)
		if len(wants) == 0 {
			return
		}
		for _, w := range wants {
			b := expect.Of(v.Document().Load(w))(t)
			v.Put(b)
		}
	}
}

// play presses keys as a text tells, and draws.
func play(t testing.TB, v *View, text string) {
	actions := []string{"down", "up", "next-hunk", "prev-hunk", "next-file", "prev-file", "side-by-side", "fold", "fold-all", "files", "right", "left", "viewed", "range", "page-down", "bottom", "top", "open"}
	c := screen.New(v.w, v.h)
	for i := range min(len(text), 40) {
		v.Do(actions[int(text[i])%len(actions)])
		fill(t, v)
		v.Draw(c, true)
		v.Range()
		_ = v.Title() + v.Row()
		n := v.lay.total()
		expect.Must(t, v.at >= 0 && v.at <= max(n-1, 0) && v.top >= 0, "row %d of %d, window at %d", v.at, n, v.top)
	}
}

const sample = `diff --git a/ui/greet.go b/ui/greet.go
index 1..2 100644
--- a/ui/greet.go
+++ b/ui/greet.go
@@ -10,7 +10,8 @@ import "fmt"
 // greet says hello.
-func greet(name string) string {
-	return "hello " + name // always
+func greet(ctx context.Context, name string) string {
+	log(ctx, name)
+	return "hello, " + name // always
 }
 
 /* one that
@@ -30,2 +31,2 @@ func main() {
 	for i := range 10 {
-		fmt.Println(greet("x"), i)
+		fmt.Println(greet(ctx, "x"), i)
diff --git a/go.sum b/go.sum
--- a/go.sum
+++ b/go.sum
@@ -1 +1 @@
-a v1.0.0 h1:x
+a v1.0.1 h1:y
diff --git a/logo.png b/logo.png
index 1..2
GIT binary patch
literal 1500
zcmaa

literal 20
zcmbb

diff --git a/bin/run b/bin/start
old mode 100644
new mode 100755
similarity index 90%
rename from bin/run
rename to bin/start
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1,3 @@
+def f(x):  # new
+	return "a" * 10
+	# ` + "\u202e" + `x
\ No newline at end of file
`

func TestADiffLooksRight(t *testing.T) {
	for _, size := range [][2]int{{78, 22}, {198, 48}} {
		for _, c := range []struct {
			name    string
			actions []string
		}{
			{"diff", nil},
			{"diff-side", []string{"side-by-side"}},
			{"diff-folded", []string{"fold-all", "down"}},
			{"diff-files", []string{"files", "down"}},
			{"diff-range", []string{"next-hunk", "down", "down", "range", "down", "down"}},
			{"diff-end", []string{"next-file", "viewed", "bottom", "right"}},
		} {
			t.Run(fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), func(t *testing.T) {
				d := opened(t, sample, 1<<20)
				d.Colors = true
				var v View
				v.SetDocument(d)
				v.Resize(size[0], size[1])
				for _, a := range c.actions {
					expect.True(t, v.Do(a), "%s does nothing", a)
				}
				fill(t, &v)
				canvas := screen.New(size[0], size[1])
				v.Draw(canvas, true)
				screentest.Golden(t, canvas, fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]))
			})
		}
	}
}

func TestTheCursorStaysOnItsLine(t *testing.T) {
	var v View
	v.SetDocument(opened(t, sample, 1<<20))
	v.Resize(198, 48)
	fill(t, &v)
	for range 5 { // to a line that is new
		v.Do("down")
	}
	before := v.Row()
	for _, a := range []string{"side-by-side", "side-by-side", "files", "files"} {
		v.Do(a)
		fill(t, &v)
		got := v.Row()
		expect.True(t, got == before || a == "side-by-side", "after %s the cursor is on %q, not on %q", a, got, before)
	}
}

func TestARangeTellsFileSideAndLines(t *testing.T) {
	var v View
	v.SetDocument(opened(t, sample, 1<<20))
	v.Resize(78, 22)
	fill(t, &v)
	for _, c := range []struct{ actions, want string }{
		{"top down down", "ui/greet.go:10"},
		{"top down down down", "ui/greet.go:-11"},
		{"top down down down range down range", "ui/greet.go:-12"},
		{"top down down down range down", "ui/greet.go:-11-12"},
		{"top down down range down down down", "ui/greet.go:10-11"},
		{"top", ""},
	} {
		for a := range strings.FieldsSeq(c.actions) {
			v.Do(a)
		}
		r, ok := v.Range()
		got := r.String()
		expect.True(t, ok == (c.want != "") && (!ok || got == c.want), "%s: %q, want %q", c.actions, got, c.want)
		v.marked = false
	}
}

func TestWhatWasViewedIsFolded(t *testing.T) {
	var v View
	v.SetDocument(opened(t, sample, 1<<20))
	v.Resize(78, 22)
	v.Do("viewed")
	if !v.Viewed["ui/greet.go"] || v.Path() != "go.sum" || !v.lay.shut[0] {
		t.Errorf("%v, the cursor is on %s", v.Viewed, v.Path())
	}
	v.Do("prev-file")
	v.Do("viewed")
	expect.True(t, !v.Viewed["ui/greet.go"] && !v.lay.shut[0], "%v", v.Viewed)
}

func TestHunksAndFilesAreFound(t *testing.T) {
	var v View
	v.SetDocument(opened(t, sample, 7))
	v.Resize(78, 22)
	where := func() string {
		p, _ := v.lay.find(v.doc, v.at)
		return fmt.Sprintf("%d.%d", p.file, p.hunk)
	}
	var got []string
	for _, a := range []string{"next-hunk", "next-hunk", "next-hunk", "next-hunk", "prev-hunk", "prev-hunk", "next-file", "next-file", "prev-file"} {
		v.Do(a)
		got = append(got, where())
	}
	want := "0.0 0.1 1.-1 4.0 1.-1 0.1 1.-1 2.-1 1.-1"
	expect.True(t, strings.Join(got, " ") == want, "got  %s\nwant %s", strings.Join(got, " "), want)
}

// BenchmarkFirstScreen opens a stored diff of 1,000,000 lines and draws its first screen:
// of one file, and of many.
func BenchmarkFirstScreen(b *testing.B) {
	for _, files := range []int{1, 1000} {
		text := string(changed(files, 1_000_000/files))
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			c := screen.New(200, 50)
			for b.Loop() {
				r := strings.NewReader(text)
				d := New(r, r.Size())
				d.Colors = true
				s := NewScanner(r, r.Size())
				var v View
				v.SetDocument(d)
				v.Resize(200, 50)
				p := expect.Of(s.Next(context.Background(), ScanStep))(b)
				v.Add(p)
				fill(b, &v)
				v.Draw(c, true)
			}
		})
	}
}

// BenchmarkScan indexes a diff of 1,000,000 lines; a step of it is what a frame may have
// to wait for.
func BenchmarkScan(b *testing.B) {
	text := string(changed(100, 10_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		opened(b, text, ScanStep)
	}
}

// BenchmarkScroll moves through a diff of 1,000,000 lines and draws each frame, with the
// loading of the lines that come into sight.
func BenchmarkScroll(b *testing.B) {
	d := opened(b, string(changed(100, 10_000)), 1<<30)
	d.Colors = true
	for _, side := range []bool{false, true} {
		for _, action := range []string{"down", "page-down", "next-file"} {
			b.Run(fmt.Sprintf("%s/side=%v", action, side), func(b *testing.B) {
				var v View
				v.Resize(200, 50)
				v.SetDocument(d)
				if side {
					v.Do("side-by-side")
				}
				c := screen.New(200, 50)
				b.ReportAllocs()
				for b.Loop() {
					v.Do(action)
					if v.at == v.lay.total()-1 {
						v.Do("top")
					}
					fill(b, &v)
					c.Clear()
					v.Draw(c, true)
				}
			})
		}
	}
}
