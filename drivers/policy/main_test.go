package policy

import (
	"os"
	"testing"

	"swarmdeck/drivers/cell"
)

// TestMain is also the process of a cell, as main is.
func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
