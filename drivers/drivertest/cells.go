package drivertest

import (
	"cmp"
	"os"
	"strconv"
	"sync"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// Cells keeps a test's runs in cells until the test ends. opt.Instance "" is this
// process; opt.Program "" is an init without the race detector, which begins in an
// eighth of the time that a test's own program takes.
func Cells(t testing.TB, opt cell.Options) *cell.Supervisor {
	t.Helper()
	opt.Instance = cmp.Or(opt.Instance, "test"+strconv.Itoa(os.Getpid()))
	if opt.Program == "" {
		var err error
		opt.Program, err = initial()
		expect.No(t, err)
	}
	s := expect.Of(cell.NewSupervisor(opt))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	return s
}

var initial = sync.OnceValues(func() (string, error) {
	return celltest.Built("init", "build", "swarmdeck/drivers/cell/celltest/init")
})
