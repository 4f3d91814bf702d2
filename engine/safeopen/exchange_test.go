package safeopen_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// exchange swaps two names in one step.
func exchange(t *testing.T, a, b string) {
	expect.No(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
}
