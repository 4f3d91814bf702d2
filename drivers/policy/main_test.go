package policy

import (
	"os"
	"syscall"
	"testing"

	"swarmdeck/drivers/cell"
)

// ownInit names the init of cells where another user may not read what is built.
const ownInit = "POLICY_TEST_INIT"

// TestMain is also the process of a cell, as main is.
func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	os.Exit(m.Run())
}
