package pane_test

import (
	"testing"

	"swarmdeck/ui/pane"
)

func TestWhatWasSpentIsShownInAFewCharacters(t *testing.T) {
	for n, want := range map[int64]string{-1: "", 0: "", 1: "1", 999: "999", 1000: "1.0k", 999_949: "999.9k", 999_950: "1.0M", 12_345_678: "12.3M", 2_000_000_000: "2.0G"} {
		if got := pane.Tokens(n); got != want || len(got) > 7 {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for usd, want := range map[float64]string{0: "", -2: "", 0.001: "<$0.01", 0.01: "$0.01", 1.239: "$1.24", 999: "$999.00", 12345.6: "$12346"} {
		if got := pane.Cost(usd); got != want || len(got) > 7 {
			t.Errorf("%g: %q, want %q", usd, got, want)
		}
	}
}
