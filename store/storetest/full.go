package storetest

import (
	"os"
	"syscall"
	"testing"
)

// FillDisk lets the data file grow no further, as a full disk does, until room
// is called or the test ends. What is written ahead in the file can still be
// used. It holds for all files of the process: no test may run beside it.
func FillDisk(t testing.TB, path string) (room func()) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	set := func(to syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &to); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: uint64(info.Size()), Max: was.Max})
	room = func() { set(was) }
	t.Cleanup(room)
	return room
}
