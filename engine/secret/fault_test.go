package secret_test

import (
	"os"
	"strings"
	"testing"

	"swarmdeck/expect"
)

func TestSecretsThatAnotherMachineSetAreCounted(t *testing.T) {
	w := newWorld(t)
	fault := func() string {
		if err := w.Fault(t.Context(), w.by.Tenant); err != nil {
			return err.Error()
		}
		return ""
	}
	expect.Is(t, fault(), "", "without a secret:")
	w.set("ONE", "first-value")
	w.set("TWO", "second-value")
	expect.Is(t, fault(), "", "with the key:")
	kept, err := os.ReadFile(w.key)
	if err == nil {
		err = os.Remove(w.key)
	}
	expect.No(t, err)
	w.again()
	said := fault()
	expect.True(t, strings.Contains(said, "2 of 2 secrets can't be opened on this machine") && strings.Contains(said, w.key), "without the key: %v", said)
	other := newWorld(t)
	other.set("X", "another-value")
	foreign, err := os.ReadFile(other.key)
	if err == nil {
		err = os.WriteFile(w.key, foreign, 0o600)
	}
	expect.No(t, err)
	w.again()
	w.set("TWO", "set-again")
	expect.Has(t, fault(), "1 of 2 secrets", "with another key:")
	expect.No(t, os.WriteFile(w.key, kept, 0o600))
	w.again()
	expect.Has(t, fault(), "1 of 2 secrets", "with the first key again:")
}
