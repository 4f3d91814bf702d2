package pane_test

import (
	"testing"

	"swarmdeck/engine/face"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
)

func TestWhatWasSpentIsShownInAFewCharacters(t *testing.T) {
	for n, want := range map[int64]string{-1: "", 0: "", 1: "1", 999: "999", 1000: "1.0k", 999_949: "999.9k", 999_950: "1.0M", 12_345_678: "12.3M", 2_000_000_000: "2.0G"} {
		got := face.Tokens(n)
		expect.True(t, got == want && len(got) <= 7, "%d: %q, want %q", n, got, want)
	}
	for usd, want := range map[float64]string{0: "", -2: "", 0.001: "<$0.01", 0.01: "$0.01", 1.239: "$1.24", 999: "$999.00", 12345.6: "$12346"} {
		got := pane.Cost(usd)
		expect.True(t, got == want && len(got) <= 7, "%g: %q, want %q", usd, got, want)
	}
}
