package storetest

import (
	"os"
	"syscall"
	"testing"

	"swarmdeck/expect"
)

// FillDisk lets the data file grow no further, as a full disk does, until room
// is called or the test ends. What is written ahead in the file can still be
// used. It holds for all files of the process: no test may run beside it.
func FillDisk(t testing.TB, path string) (room func()) {
	t.Helper()
	info := expect.Of(os.Stat(path))(t)
	var was syscall.Rlimit
	expect.No(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	set := func(to syscall.Rlimit) {
		expect.No(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &to))
	}
	set(syscall.Rlimit{Cur: uint64(info.Size()), Max: was.Max})
	room = func() { set(was) }
	t.Cleanup(room)
	return room
}
