// Package screentest compares what tests draw with golden screens: text and
// one letter a cell for its role, so that a change of theme changes no test.
package screentest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarmdeck/expect"
	"swarmdeck/ui/screen"
)

var update = flag.Bool("update", false, "rewrite the golden screens under testdata")

// Golden compares a picture with testdata/NAME.screen of the package under
// test; -update rewrites the file instead.
func Golden(t testing.TB, c *screen.Canvas, name string) {
	t.Helper()
	got := strings.Join(c.Plain(), "\n") + "\n---- roles ----\n" + strings.Join(c.Roles(), "\n") + "\n"
	path := filepath.Join("testdata", name+".screen")
	if *update {
		expect.No(t, os.MkdirAll("testdata", 0o755))
		expect.No(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it); got:\n%s\nwant:\n%s", path, got, want)
	}
}

// ASCII fails unless every character of the picture is printable ASCII.
func ASCII(t testing.TB, c *screen.Canvas) {
	t.Helper()
	for _, row := range c.Plain() {
		for _, r := range row {
			if r < ' ' || r > '~' {
				t.Fatalf("%q is not ASCII in %q", r, row)
			}
		}
	}
}
