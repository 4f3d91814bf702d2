package secret_test

import "testing"

func TestTextsForTheLogHoldNoValueThatWasHandedOut(t *testing.T) {
	w := newWorld(t)
	const text = "panic: login with first-value-1 and second-value-2"
	if got := w.Masked(text); got != text {
		t.Errorf("before anything was handed out: %q", got)
	}
	w.set("ONE", "first-value-1")
	w.resolved(map[string]string{"A": "@ONE"})
	w.set("ONE", "second-value-2")
	w.resolved(map[string]string{"A": "@ONE"})
	if got := w.Masked(text); got != "panic: login with [secret t_acme/ONE (old)] and [secret t_acme/ONE]" {
		t.Errorf("masked: %q", got)
	}
}
