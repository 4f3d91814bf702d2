package gittest

import (
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/git"
)

// Git starts git as the engine does.
func Git(t testing.TB) git.Git {
	t.Helper()
	return git.Git{Cells: drivertest.Cells(t, cell.Options{})}
}
