package expect_test

import (
	"errors"
	"fmt"
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

func TestAFailureSaysWhatItIsAbout(t *testing.T) {
	for want, fail := range map[string]func(testing.TB){
		"":                          func(t testing.TB) { expect.No(t, nil); expect.Is(t, 3, 3) },
		"fatal: no":                 func(t testing.TB) { expect.No(t, errors.New("no")) },
		"fatal: row 2: no":          func(t testing.TB) { expect.No(t, errors.New("no"), "row", 2) },
		"got 1, want 2":             func(t testing.TB) { expect.Is(t, 1, 2) },
		`a name: got "a", want "b"`: func(t testing.TB) { expect.Is(t, "a", "b", "a name") },
		`any: got "a", want "b"`:    func(t testing.TB) { expect.Is[any](t, "a", "b", "any") },
	} {
		var heard told
		if fail(&heard); heard.text != want {
			t.Errorf("told %q, want %q", heard.text, want)
		}
	}
}
