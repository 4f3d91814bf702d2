package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestADiffIsUnified(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "a\n", "f\n@@ -0,0 +1 @@\n+a"},
		{"a\n", "", "f\n@@ -1 +0,0 @@\n-a"},
		{"a\nb\n", "a\nb\n", "f"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n", "f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8"},
		{
			"a\n1\n2\n3\n4\n5\n6\n7\nz\n", "A\n1\n2\n3\n4\n5\n6\n7\nZ\n",
			"f\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-z\n+Z",
		},
	} {
		got := Unified("f", c.before, c.after, 1<<16)
		expect.True(t, got == c.want, "%q to %q:\n%s\nwant\n%s", c.before, c.after, got, c.want)
	}
}

// patched applies hunks to a text.
func patched(a []string, hs []hunk) ([]string, error) {
	var out []string
	at := 0
	for _, h := range hs {
		if h.old < at || h.old > len(a) {
			return nil, fmt.Errorf("a hunk at line %d after line %d", h.old, at)
		}
		out, at = append(out, a[at:h.old]...), h.old
		if len(out) != h.new {
			return nil, fmt.Errorf("a hunk for line %d comes at line %d", h.new, len(out))
		}
		for _, e := range h.edits {
			if e.Sign != '+' {
				if at >= len(a) || a[at] != e.Line {
					return nil, fmt.Errorf("line %d is not %q", at, e.Line)
				}
				at++
			}
			if e.Sign != '-' {
				out = append(out, e.Line)
			}
		}
	}
	return append(out, a[at:]...), nil
}

func TestADiffLeadsFromOneTextToTheOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(n int) (out []string) {
		for range n {
			out = append(out, string(rune('a'+rng.IntN(4))))
		}
		return out
	}
	for range 3000 {
		a := text(rng.IntN(30))
		b := slices.Clone(a)
		for range rng.IntN(4) {
			i := rng.IntN(len(b) + 1)
			b = slices.Replace(b, i, min(i+rng.IntN(3), len(b)), text(rng.IntN(3))...)
		}
		got, err := patched(a, hunks(Lines(a, b)))
		expect.Must(t, err == nil && slices.Equal(got, b), "%q to %q gives %q, %v", a, b, got, err)
	}
}

func TestALargeDiffIsBounded(t *testing.T) {
	a, b := strings.Repeat("old\n", 200_000), strings.Repeat("new\n", 200_000)
	got := Unified("f", a, b, 1<<16)
	expect.True(t, len(got) <= 1<<16+8 && strings.HasPrefix(got, "f\n@@ -1,200000 +1,200000 @@\n-old\n"), "%d bytes: %.60q", len(got), got)
}
