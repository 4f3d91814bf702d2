package pipe

import (
	"errors"
	"io"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestKeptKeepsNoMoreThanItMay(t *testing.T) {
	over := errors.New("too much")
	for name, c := range map[string]struct {
		kept *Kept
		want string
		err  error
	}{
		"the beginning":           {&Kept{Most: 5}, "abcde", nil},
		"the beginning, or error": {&Kept{Most: 5, Over: over}, "abcde", over},
		"all that just fits":      {&Kept{Most: 9, Over: over}, "abcdefghi", nil},
		"the end":                 {&Kept{Most: 5, End: true}, "efghi", nil},
		"nothing":                 {&Kept{}, "", nil},
	} {
		for _, step := range []int{1, 2, 9} {
			k := &Kept{Most: c.kept.Most, End: c.kept.End, Over: c.kept.Over}
			_, err := io.CopyBuffer(struct{ io.Writer }{k}, struct{ io.Reader }{strings.NewReader("abcdefghi")}, make([]byte, step))
			got := string(k.Bytes())
			expect.True(t, got == c.want && errors.Is(err, c.err) && k.Cut() == (len(c.want) < 9), "%s, %d at a time: %q, %v", name, step, got, err)
			got = string(k.Take())
			expect.True(t, got == c.want && len(k.Bytes()) == 0, "%s: took %q, left %q", name, got, k.Bytes())
			if c.kept.End {
				continue
			}
			var to strings.Builder
			k = &Kept{Most: c.kept.Most, Over: c.kept.Over, To: &to}
			_, err = io.CopyBuffer(struct{ io.Writer }{k}, struct{ io.Reader }{strings.NewReader("abcdefghi")}, make([]byte, step))
			expect.True(t, to.String() == c.want && errors.Is(err, c.err), "%s, %d at a time, elsewhere: %q, %v", name, step, to.String(), err)
		}
	}
}
