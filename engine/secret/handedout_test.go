package secret_test

import (
	"testing"

	"swarmdeck/expect"
)

func TestTextsForTheLogHoldNoValueThatWasHandedOut(t *testing.T) {
	w := newWorld(t)
	const text = "panic: login with first-value-1 and second-value-2"
	expect.Is(t, w.Masked(text), text, "before anything was handed out")
	w.set("ONE", "first-value-1")
	w.resolved(map[string]string{"A": "@ONE"})
	w.set("ONE", "second-value-2")
	w.resolved(map[string]string{"A": "@ONE"})
	expect.Is(t, w.Masked(text), "panic: login with [secret t_acme/ONE (old)] and [secret t_acme/ONE]", "masked")
}
