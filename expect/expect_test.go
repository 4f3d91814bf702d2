package expect_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"swarmdeck/expect"
)

// told is a test that keeps what fails it.
type told struct {
	testing.TB
	text string
}

func (t *told) Helper()                           {}
func (t *told) Errorf(format string, args ...any) { t.text = fmt.Sprintf(format, args...) }
func (t *told) Fatalf(format string, args ...any) { t.text = fmt.Sprintf("fatal: "+format, args...) }

var errCanceled = errors.New("canceled")

func TestAFailureSaysWhatItIsAbout(t *testing.T) {
	for want, fail := range map[string]func(testing.TB){
		"": func(t testing.TB) {
			expect.No(t, nil)
			expect.Is(t, 3, 3)
			expect.Has(t, "abc", "b")
			expect.Err(t, io.EOF, io.EOF)
			expect.True(t, true, "")
			expect.Must(t, true, "")
			expect.Says(t, nil, "")
		},
		"fatal: EOF":                                   func(t testing.TB) { expect.No(t, io.EOF) },
		"fatal: row: 2: EOF":                           func(t testing.TB) { expect.No(t, io.EOF, "row", 2) },
		"b: got 2, want 3, of map[a:1 b:2]":            func(t testing.TB) { expect.Row(t, map[string]any{"a": 1, "b": 2}, "a", 1, "b", 3) },
		"fatal: unexpected EOF":                        func(t testing.TB) { expect.Of(3, io.ErrUnexpectedEOF)(t) },
		"got 1, want 2":                                func(t testing.TB) { expect.Is(t, 1, 2) },
		`a name: got "a", want "b"`:                    func(t testing.TB) { expect.Is(t, "a", "b", "a name") },
		`any: got "a", want "b"`:                       func(t testing.TB) { expect.Is[any](t, "a", "b", "any") },
		"got [1 2], want [2 1]":                        func(t testing.TB) { expect.Same(t, []int{1, 2}, []int{2, 1}) },
		`got "ab", want it to have "c"`:                func(t testing.TB) { expect.Has(t, "ab", "c") },
		"got error EOF, want canceled":                 func(t testing.TB) { expect.Err(t, io.EOF, errCanceled) },
		"2 of 3":                                       func(t testing.TB) { expect.True(t, false, "%d of %d", 2, 3) },
		"fatal: 2 of 3":                                func(t testing.TB) { expect.Must(t, false, "%d of %d", 2, 3) },
		`got error EOF, want one that says "x"`:        func(t testing.TB) { expect.Says(t, expect.Fault(3, io.EOF), "x") },
		`row: got error <nil>, want one that says "x"`: func(t testing.TB) { expect.Says(t, nil, "x", "row") },
		"a lie: got no error":                          func(t testing.TB) { expect.Fails(t, nil, "a lie") },
	} {
		var heard told
		if fail(&heard); heard.text != want {
			t.Errorf("told %q, want %q", heard.text, want)
		}
	}
}
