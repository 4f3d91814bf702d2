package gittest

import (
	"strconv"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/git"
)

// Git starts git as the engine does. The test's program must be able to be the
// init of a cell (cell.Entered).
func Git(t testing.TB) git.Git {
	t.Helper()
	sup, err := cell.NewSupervisor(cell.Options{Instance: "git-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(); err != nil {
			t.Error(err)
		}
	})
	return git.Git{Cells: sup}
}
