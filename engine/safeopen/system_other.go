//go:build !linux

package safeopen

import "golang.org/x/sys/unix"

const atPath = unix.O_RDONLY

func renameNew(int, string, string) error { return unix.ENOSYS }

func unnamed(int) (int, error) { return 0, unix.ENOSYS }

func called(int, int, string) error { return unix.ENOSYS }
