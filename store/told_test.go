package store

import (
	"errors"
	"testing"

	"swarmdeck/expect"
)

func TestADamagedPageIsToldInPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"panic: assertion failed: page 3: has unexpected type/flags: 0": "damaged page: page 3: has unexpected type/flags: 0",
		"page 7: unreachable unfreed":                                   "bbolt: page 7: unreachable unfreed",
	} {
		expect.Is(t, told(errors.New(text)), want, text)
	}
}
